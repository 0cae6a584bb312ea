"""Output of a program as text that does nothing to the terminal that shows it."""

import codecs
import re
from typing import Final

_SEQUENCE: Final = re.compile(
    r"\x1b[\]PX^_][^\x07\x1b]*(?:\x07|\x1b\\)|\x1b\[[0-?]*[ -/]*[@-~]"
    r"|\x1b(?:[ -/]+[0-~]|[0-OQ-WYZ\\`-~])"
)
_UNFINISHED: Final = re.compile(
    r"(?:\x1b(?:[\]PX^_][^\x07\x1b]*\x1b?|\[[0-?]*[ -/]*|[ -/]*)|\r+)\Z"
)
_LINE_END: Final = re.compile(r"\r+\n|\r+")
_HELD_BACK_CHARS: Final = 4096
_REPLACEMENT: Final = "\ufffd"


class TerminalText:
    """One stream of output, which comes in pieces."""

    def __init__(self) -> None:
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._held_back = ""

    def add(self, data: bytes) -> str:
        """Return what can be shown by now: no escape sequence, and no other control character.

        A sequence that has only begun waits for its end, but is not kept without limit.
        """
        text = self._held_back + self._decoder.decode(data)
        text = _SEQUENCE.sub("", text)
        begun = _UNFINISHED.search(text)
        cut = len(text) if begun is None or len(begun[0]) > _HELD_BACK_CHARS else begun.start()
        self._held_back = text[cut:]
        return "".join(
            one if one.isprintable() or one in "\n\t" else _REPLACEMENT
            for one in _LINE_END.sub("\n", text[:cut])
        )
