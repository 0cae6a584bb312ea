"""Text that a host sent, made safe to store and to show.

PostgreSQL takes no NUL and columns have a length. Programs choose their own names and messages, so
the text may contain escape sequences.
"""

from collections.abc import Iterable
from typing import Final, NamedTuple
from uuid import UUID

from controller_client.protocol.messages import Failure, InputAck
from controller_client.protocol.terminal_text.view import text_of
from projects.errors.uncertain import INPUT_BLOCKED, INPUT_UNCONFIRMED
from projects.storage.columns import as_uuid

MAX_CODE_CHARS: Final = 32
MAX_FAILURE_CHARS: Final = 1024
_ID_CHARS: Final = 36
_READ_FOR_EACH: Final = 16
"""So many characters are read for one that is stored: the others are escape sequences."""


class StoredFailure(NamedTuple):
    """The columns of a failure. Both are empty if nothing failed."""

    code: str
    text: str


def stored_id(text: str) -> UUID | None:
    """The id of a session; None unless ``text`` is written as the server writes ids."""
    if len(text) != _ID_CHARS:
        return None
    try:
        parsed = as_uuid(text)
    except ValueError:
        return None
    return parsed if str(parsed) == text else None


def stored_text(text: str, max_chars: int) -> str:
    """``text`` without escape sequences, control characters and NUL, cut to ``max_chars``.

    Characters that cannot be seen are spelled out. Of a text that is far longer only the beginning
    is looked at: a host chooses its length.
    """
    begins = text[: _READ_FOR_EACH * max_chars].replace("\0", "\N{REPLACEMENT CHARACTER}")
    return text_of(begins.encode(errors="replace"))[:max_chars]


def stored_list(texts: Iterable[str], max_items: int, max_chars: int) -> list[str]:
    """The first ``max_items`` of ``texts``, each as ``stored_text`` returns it."""
    return [stored_text(text, max_chars) for text, _ in zip(texts, range(max_items), strict=False)]


def stored_failure(failure: Failure | None) -> StoredFailure:
    """The columns in which ``failure`` is stored."""
    if failure is None:
        return StoredFailure(code="", text="")
    suffix = f" ({failure.errno_name})" if failure.errno_name else ""
    return StoredFailure(
        code=stored_text(failure.code, MAX_CODE_CHARS),
        text=stored_text(failure.message + suffix, MAX_FAILURE_CHARS),
    )


def input_failure(ack: InputAck) -> Failure | None:
    """The failure of an input; None if the input was typed.

    Most codes say that nothing was typed. If a part of the input was typed, only INPUT_BLOCKED
    stays; every other code becomes INPUT_UNCONFIRMED.
    """
    if ack.failure is None or not ack.accepted_bytes:
        return ack.failure
    code = ack.failure.code if ack.failure.code == INPUT_BLOCKED else INPUT_UNCONFIRMED
    # The number stands first: the end of a long message is cut off when it is stored.
    message = (
        f"{ack.accepted_bytes} bytes of it were typed, and the rest was not: {ack.failure.message}"
    )
    return Failure(code=code, message=message)
