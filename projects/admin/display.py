"""How values that others chose are shown: nothing invisible, nothing that reorders the text around it. Templates escape HTML."""

import re
import unicodedata
from datetime import datetime, timedelta

from django.utils import timezone

_SHORT = 80
# Cc: controls. Cf: bidirectional controls, zero-width characters. Zl, Zp: line breaks in disguise. Cs, Co: nothing a font can show.
_INVISIBLE = frozenset({"Cc", "Cf", "Zl", "Zp", "Cs", "Co"})


# What is spelled out already is no word.
_WORD = re.compile(r"\\(?:x[0-9a-f]{2}|u[0-9a-f]{4}|U[0-9a-f]{8})|\w+")


def visible(text: str, *, keep: str = "") -> str:
    r"""``text`` with every control, format and bidirectional character spelled out as ``\x1b`` or ``\u202e``, but for those in ``keep``.

    Where nothing is kept, it is a name or a command: letters that pass for others are spelled out, too.
    """
    text = text if keep or text.isascii() else _WORD.sub(_without_lookalikes, text)
    return "".join(_spelled_out(char) if char not in keep and unicodedata.category(char) in _INVISIBLE else char for char in text)


def in_full(command: str) -> str:
    """The whole command, made visible; with its ASCII form behind it where that differs, since letters of two scripts may look the same."""
    shown = visible(command)
    return shown if command.isascii() else f"{shown}  [in ASCII: {command.encode('unicode_escape').decode('ascii')}]"


def _without_lookalikes(word: "re.Match[str]") -> str:
    r"""Without letters of another script among Latin ones (``\u0455udo``), and without fancy forms of Latin ones (full width, bold)."""
    has_latin = any(char.isascii() and char.isalpha() for char in word[0])
    return "".join(_spelled_out(char) if _passes_for_another(char, has_latin=has_latin) else char for char in word[0])


def _passes_for_another(char: str, *, has_latin: bool) -> bool:
    if char.isascii() or not char.isalnum():
        return False
    plain = unicodedata.normalize("NFKC", char)
    if plain != char and plain.isascii():
        return True
    return has_latin and char.isalpha() and not unicodedata.name(char, "").startswith("LATIN")


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
