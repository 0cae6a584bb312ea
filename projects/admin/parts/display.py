"""Shows text that callers, hosts and programs chose. Templates escape HTML.

Nothing in it stays invisible, and nothing reorders the text around it.
"""

import json
import re
import unicodedata
from collections.abc import Callable, Iterator, Mapping
from datetime import datetime, timedelta
from typing import Any

from django.contrib import admin
from django.template.loader import render_to_string
from django.utils import timezone

_SHORT = 80
# Cc: controls. Cf: bidirectional controls, zero-width characters. Zl, Zp: line breaks in disguise.
# Cs, Co: nothing a font can show.
_INVISIBLE = frozenset({"Cc", "Cf", "Zl", "Zp", "Cs", "Co"})


# A character that is spelled out already is no part of a word.
_WORD = re.compile(r"\\(?:[nrt]|x[0-9a-f]{2}|u[0-9a-f]{4}|U[0-9a-f]{8})|\w+")


def visible(text: str, *, keep: str = "") -> str:
    r"""Spells out control, format and bidirectional characters, such as ``\x1b`` or ``\u202e``.

    Characters in ``keep`` stay. Text with nothing to keep is a name or a command: there, letters
    that look like others are spelled out, too.
    """
    if not keep:
        return "".join(shown for _, shown in spelled(text))
    return "".join(
        char if char in keep or not _is_invisible(char) else _spelled_out(char) for char in text
    )


def spelled(text: str) -> Iterator[tuple[str, str]]:
    """Each character of a name or a command, and what is shown in its place.

    The words around a letter say whether it passes for another one.
    """
    words = () if text.isascii() else _WORD.finditer(text)
    lookalikes = {place for word in words for place in _lookalikes(word)}
    for place, char in enumerate(text):
        is_odd = place in lookalikes or _is_invisible(char)
        yield char, _spelled_out(char) if is_odd else char


def in_full(command: str) -> str:
    """The whole command, made visible.

    If it is not ASCII its ASCII form follows, since letters of two scripts may look the same.
    """
    shown = visible(command)
    return (
        shown
        if command.isascii()
        else f"{shown}  [in ASCII: {command.encode('unicode_escape').decode('ascii')}]"
    )


def _lookalikes(word: "re.Match[str]") -> Iterator[int]:
    r"""The places of letters of another script among Latin ones, as in ``\u0455udo``.

    Full-width, bold and other fancy forms of Latin letters count, too.
    """
    has_latin = any(char.isascii() and char.isalpha() for char in word[0])
    for place, char in enumerate(word[0], word.start()):
        if _passes_for_another(char, has_latin=has_latin):
            yield place


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


def text_column(
    field: str,
    description: str,
    *,
    is_whole: bool = False,
    is_sortable: bool = False,
    keep: str = "",
    empty: str = "-",
) -> Callable[[object, object], str]:
    """A column of an admin page that shows a text field of the row.

    Args:
        field: the name of the model's field.
        description: the title of the column.
        is_whole: show the whole text, not its beginning on one line.
        is_sortable: the list can be sorted by the field.
        keep: the characters that stay in a whole text, see ``visible``.
        empty: what stands for an empty text.

    """

    @admin.display(description=description, ordering=field if is_sortable else None)
    def column(_model_admin: object, row: object) -> str:
        text = str(getattr(row, field))
        return (visible(text, keep=keep) if is_whole else shortened(text)) or empty

    return column


def duration(begin: datetime | None, end: datetime | None) -> str:
    """From ``begin`` to ``end`` (or to now), such as ``1:02:03`` or ``4.2 s``."""
    if begin is None:
        return "-"
    seconds = ((end or timezone.now()) - begin).total_seconds()
    return f"{seconds:.1f} s" if seconds < 60 else str(timedelta(seconds=int(seconds)))


def _is_invisible(char: str) -> bool:
    return unicodedata.category(char) in _INVISIBLE


def _spelled_out(char: str) -> str:
    return char.encode("unicode_escape").decode("ascii")


def detail_text(detail: Mapping[str, Any]) -> str:
    """The detail of an audit row as JSON, made visible."""
    return visible(json.dumps(detail, ensure_ascii=False, sort_keys=True)) if detail else "-"


def link(page: str, text: str) -> str:
    """A link for a cell of a list. Its template escapes the address and the text."""
    return render_to_string("admin/projects/link.html", {"page": page, "text": text})
