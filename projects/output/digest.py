"""Digests: a stretch of output in a few lines, for callers who were away.

By rules and without a model: same bytes, same digest.

* ``lines`` counts line feeds, and a last line without one.
* ``progress``: lines that were redrawn with carriage returns, each in its last state; the newest
  MAX_SHOWN.
* ``errors`` and ``warnings``: the newest MAX_SHOWN lines that match ERROR, or else WARNING, and how
  many there were in all. A line that only says that there are none (``0 errors``, ``no warnings``)
  is neither.
* ``last_lines``: the newest lines with anything in them.
* ``prompt``: a last line without an end, which is how a prompt stands there.
"""

from collections import deque
from collections.abc import Iterable
from typing import Final

import re2
from pydantic import Field

from projects.output.plain_lines import Line, LineSplitter
from projects.output.result import Result
from projects.secrets.masked_lines import MaskedLines
from projects.secrets.masks import SecretMask

MAX_SHOWN: Final = 10
LAST_LINES: Final = 3
MAX_CHARS: Final = 300
ERROR: Final = (
    r"(?i:\b(error|errors|err|fatal|panic|critical|exception|traceback|fail|failed|failure|failures|denied|refused|abort|aborted|segfault"
    r"|segmentation fault|out of memory|oom|killed|cannot|no such file|not found|timed "
    r"out|unreachable)\b)|Error\b|Exception\b"
)
WARNING: Final = r"(?i:\b(warn|warning|warnings|deprecated|deprecation)\b)|Warning\b"
_NONE: Final = r"(?i)\b(0|no|without)\s+(errors?|failures?|failed|warnings?|exceptions?)\b"
_error, _warning, _none = re2.compile(ERROR), re2.compile(WARNING), re2.compile(_NONE)


class DigestLine(Result):
    """A line, and where it begins."""

    offset: int
    text: str


class Digest(Result):
    """A summary of new output, made by fixed rules."""

    from_offset: int
    to_offset: int
    bytes: int
    skipped_bytes: int = Field(
        description="The oldest bytes, which were lost or too many to look at."
    )
    lines: int
    error_count: int
    errors: tuple[DigestLine, ...] = Field(description="The newest lines that look like errors.")
    warning_count: int
    warnings: tuple[DigestLine, ...]
    progress: tuple[DigestLine, ...] = Field(description="Progress bars, each in its last state.")
    last_lines: tuple[str, ...]
    prompt: str | None = Field(
        description="The last line, if it has no line feed, as prompts have none."
    )


class Digester:
    """Takes output piece by piece, and masks its secrets; ``digest`` at the end."""

    def __init__(self, offset: int, mask: SecretMask | None = None) -> None:
        self._masked = MaskedLines[Line](mask or SecretMask())
        self._from = self._to = offset
        self._splitter = LineSplitter(offset)
        self._skipped = self._lines = self._errors = self._warnings = 0
        self._shown_errors: deque[DigestLine] = deque(maxlen=MAX_SHOWN)
        self._shown_warnings: deque[DigestLine] = deque(maxlen=MAX_SHOWN)
        self._progress: deque[DigestLine] = deque(maxlen=MAX_SHOWN)
        self._last: deque[str] = deque(maxlen=LAST_LINES)
        self._open: str | None = None

    def feed(self, data: bytes) -> None:
        """Takes the next bytes of output."""
        self._to += len(data)
        self._take(self._splitter.feed(data))

    def skip(self, size: int) -> None:
        """Bytes that are not looked at come next."""
        self._to += size
        self._skipped += size
        self._end(self._to)

    def digest(self) -> Digest:
        """Of everything that was taken."""
        self._end()
        return Digest(
            from_offset=self._from,
            to_offset=self._to,
            bytes=self._to - self._from,
            skipped_bytes=self._skipped,
            lines=self._lines,
            error_count=self._errors,
            errors=tuple(self._shown_errors),
            warning_count=self._warnings,
            warnings=tuple(self._shown_warnings),
            progress=tuple(self._progress),
            last_lines=tuple(self._last),
            prompt=self._open,
        )

    def _end(self, next_offset: int | None = None) -> None:
        self._take(self._splitter.finish(next_offset))
        self._note(self._masked.finish())

    def _take(self, lines: Iterable[Line]) -> None:
        for line in lines:
            self._note(self._masked.feed(line, line.text))

    def _note(self, lines: Iterable[tuple[Line, str]]) -> None:
        for line, masked in lines:
            text = masked.strip()[:MAX_CHARS]
            shown = DigestLine(offset=line.offset, text=text)
            self._lines += 1
            self._open = text if text and not line.is_ended else None
            if not text:
                continue
            self._last.append(text)
            if line.is_redrawn:
                self._progress.append(shown)
            if _error.search(text) and not _none.search(text):
                self._errors += 1
                self._shown_errors.append(shown)
            elif _warning.search(text) and not _none.search(text):
                self._warnings += 1
                self._shown_warnings.append(shown)
