"""What a stretch of output comes to, in a few lines, for callers who were away. By rules and without a model: same bytes, same digest.

* ``lines`` counts line feeds, and a last line without one.
* ``progress``: lines that were redrawn with carriage returns, each in its last state; the newest MAX_SHOWN.
* ``errors`` and ``warnings``: the newest MAX_SHOWN lines that match ERROR, or else WARNING, and how many there were in all. A line that
  only says that there are none (``0 errors``, ``no warnings``) is neither.
* ``last_lines``: the newest lines with anything in them.
* ``prompt``: a last line without an end, which is how a prompt stands there.
"""

from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

import re2

from projects.plain_lines import Line, LineSplitter

MAX_SHOWN: Final = 10
LAST_LINES: Final = 3
MAX_CHARS: Final = 300
ERROR: Final = (
    r"(?i:\b(error|errors|err|fatal|panic|critical|exception|traceback|fail|failed|failure|failures|denied|refused|abort|aborted|segfault"
    r"|segmentation fault|out of memory|oom|killed|cannot|no such file|not found|timed out|unreachable)\b)|Error\b|Exception\b"
)
WARNING: Final = r"(?i:\b(warn|warning|warnings|deprecated|deprecation)\b)|Warning\b"
_NONE: Final = r"(?i)\b(0|no|without)\s+(errors?|failures?|failed|warnings?|exceptions?)\b"
_error, _warning, _none = re2.compile(ERROR), re2.compile(WARNING), re2.compile(_NONE)


@dataclass(frozen=True, kw_only=True)
class DigestLine:
    """One line and where it begins."""

    offset: int
    text: str


@dataclass(frozen=True, kw_only=True)
class Digest:
    """``[from_offset, to_offset)`` in short. ``skipped_bytes`` of it, the oldest, were lost or too many to look at."""

    from_offset: int
    to_offset: int
    bytes: int
    skipped_bytes: int
    lines: int
    error_count: int
    errors: tuple[DigestLine, ...]
    warning_count: int
    warnings: tuple[DigestLine, ...]
    progress: tuple[DigestLine, ...]
    last_lines: tuple[str, ...]
    prompt: str | None


class Digester:
    """Takes output piece by piece; ``digest`` at the end."""

    def __init__(self, offset: int) -> None:
        self._from = self._to = offset
        self._splitter = LineSplitter(offset)
        self._skipped = self._lines = self._errors = self._warnings = 0
        self._shown_errors: deque[DigestLine] = deque(maxlen=MAX_SHOWN)
        self._shown_warnings: deque[DigestLine] = deque(maxlen=MAX_SHOWN)
        self._progress: deque[DigestLine] = deque(maxlen=MAX_SHOWN)
        self._last: deque[str] = deque(maxlen=LAST_LINES)
        self._open: str | None = None

    def feed(self, data: bytes) -> None:
        """The next bytes."""
        self._to += len(data)
        self._take(self._splitter.feed(data))

    def skip(self, size: int) -> None:
        """Bytes that are not looked at come next."""
        self._to += size
        self._skipped += size
        self._take(self._splitter.finish(self._to))

    def digest(self) -> Digest:
        """Of everything that was taken."""
        self._take(self._splitter.finish())
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

    def _take(self, lines: Iterable[Line]) -> None:
        for line in lines:
            text = line.text.strip()[:MAX_CHARS]
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
