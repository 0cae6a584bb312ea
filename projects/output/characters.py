"""The bounds of UTF-8 characters, so that a range of bytes is cut without splitting a character.

Pure.
"""

import codecs
from typing import Final

LONGEST: Final = 4
"""Bytes of the longest character."""


def complete_length(data: bytes) -> int:
    """The number of bytes of ``data`` that are whole characters or never will be a character.

    The bytes after them may still be completed.
    """
    for back in range(1, min(LONGEST, len(data) + 1)):
        byte = data[-back]
        if not is_continuation(byte):
            decoder = codecs.getincrementaldecoder("utf-8")(errors="replace")
            decoder.decode(data[-back:])
            return len(data) - len(decoder.getstate()[0])
    return len(data)


def length_of_rest(before: bytes | None, data: bytes) -> int:
    """The number of bytes at the start of ``data`` that end a character begun in ``before``.

    ``before`` None: the bytes before are not known.
    """
    continuation = next(
        (i for i, byte in enumerate(data[: LONGEST - 1]) if not is_continuation(byte)),
        min(LONGEST - 1, len(data)),
    )
    if continuation == 0:
        return 0
    if before is None:
        return continuation
    pending = len(before) - complete_length(before)
    if not pending:
        return 0
    for taken in range(1, continuation + 1):
        begun = before[-pending:] + data[:taken]
        if complete_length(begun) == len(begun):
            # Completed, unless these bytes cannot follow: then none of them belongs to it.
            return taken if "\N{REPLACEMENT CHARACTER}" not in begun.decode(errors="replace") else 0
    return continuation


def is_continuation(byte: int) -> bool:
    """Only ever stands inside a character."""
    return byte & 0xC0 == 0x80
