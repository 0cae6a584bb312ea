"""How values that others chose are shown: nothing invisible, nothing that reorders the text around it. Templates escape HTML."""

import unicodedata
from datetime import datetime, timedelta

from django.utils import timezone

_SHORT = 80
# Cc: controls. Cf: bidirectional controls, zero-width characters. Zl, Zp: line breaks in disguise. Cs, Co: nothing a font can show.
_INVISIBLE = frozenset({"Cc", "Cf", "Zl", "Zp", "Cs", "Co"})


def visible(text: str, *, keep: str = "") -> str:
    r"""``text`` with every control, format and bidirectional character spelled out as ``\x1b`` or ``\u202e``, but for those in ``keep``."""
    return "".join(_spelled_out(char) if char not in keep and unicodedata.category(char) in _INVISIBLE else char for char in text)


def shortened(text: str, length: int = _SHORT) -> str:
    """The beginning of ``text``, made visible, on one line."""
    shown = visible(text)
    return shown if len(shown) <= length else shown[: length - 1] + "…"


def duration(begin: datetime | None, end: datetime | None) -> str:
    """From ``begin`` to ``end`` (or to now), such as ``1:02:03`` or ``4.2 s``."""
    if begin is None:
        return "-"
    seconds = ((end or timezone.now()) - begin).total_seconds()
    return f"{seconds:.1f} s" if seconds < 60 else str(timedelta(seconds=int(seconds)))


def _spelled_out(char: str) -> str:
    return char.encode("unicode_escape").decode("ascii")
