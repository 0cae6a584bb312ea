"""Menus that a program drew on the screen: rows with a pointer or marks, and rows of buttons."""

import re
from collections.abc import Sequence
from typing import Final, NamedTuple

from projects.sessions.asked.words import CHOOSING, means_yes_and_no

_BORDERS: Final = " \t│┃║▌|"
_POINTERS: Final = "❯›➤▸▶»→>"
_CHOSEN: Final = "●◉•"
_NOT_CHOSEN: Final = "○◯"
_BOXES: Final = "◻◼☐☑☒▢▣"
_MARK: Final = rf"[{_CHOSEN}{_NOT_CHOSEN}{_BOXES}]|\([ *•xX]\)|\[[ *xX]\]"
_MARKED_ROW: Final = re.compile(rf"(?:[{_POINTERS}] ?)?({_MARK})\s+(\S.*)\Z")
_MARKED_INLINE: Final = re.compile(rf"({_MARK})\s+([^{_CHOSEN}{_NOT_CHOSEN}/]{{1,40}}?)\s*(?:/|\Z)")
_POINTED_ROW: Final = re.compile(rf"([{_POINTERS}]\s+)(\S.*)\Z")
_BUTTON: Final = re.compile(r"<\s*([^<>\s][^<>]{0,20}?)\s*>")
_QUESTION: Final = re.compile(r"^[?◆◇]|[?？:：؟]\s*(?:[(\[].*)?\Z|[(\[]use |arrow", re.IGNORECASE)
_TAGGED: Final = re.compile(r"\S{1,20}\s+\S.*\Z")
MENU_SIGNS: Final = re.compile("[❯›➤▸▶»→●◉•○◯◻◼☐☑☒▢▣<]|> |\\([ *xX]\\)|\\[[ *xX]\\]")
"""Without one of these no menu is read from a screen."""


class DrawnMenu(NamedTuple):
    """The labels of the rows or buttons, and the one that Enter takes, if the text shows it."""

    labels: tuple[str, ...]
    taken: str | None

    @property
    def are_yes_and_no(self) -> bool:
        """True if the labels mean yes and no."""
        return means_yes_and_no(set(self.labels))


class _Row(NamedTuple):
    column: int
    text: str


def drawn_menu(lines: Sequence[str], cursor_row: int, cursor_column: int) -> DrawnMenu | None:
    """Return the one menu of a screen, if there is one that text alone shows."""
    rows = [_without_border(line) for line in lines]
    buttons = _buttons(lines, cursor_row, cursor_column)
    if buttons is not None and buttons.are_yes_and_no:
        return buttons
    found = _marked(rows) or _pointed(rows)
    if found is None and buttons is not None:
        found = _boxed(lines, rows, cursor_row, cursor_column)
    return found


def _without_border(line: str) -> _Row:
    text = line.lstrip(_BORDERS)
    return _Row(len(line) - len(text), text.rstrip(_BORDERS))


def _buttons(lines: Sequence[str], cursor_row: int, cursor_column: int) -> DrawnMenu | None:
    for row in range(len(lines) - 1, -1, -1):
        buttons = list(_BUTTON.finditer(lines[row]))
        if len(buttons) > 1 and not _BUTTON.sub("", lines[row]).strip(_BORDERS):
            taken = next(
                (
                    button[1]
                    for button in buttons
                    if row == cursor_row and button.start() <= cursor_column < button.end()
                ),
                None,
            )
            return DrawnMenu(tuple(button[1] for button in buttons), taken)
    return None


def _marked(rows: list[_Row]) -> DrawnMenu | None:
    """Return rows with round or square marks; only round ones say what Enter takes."""
    block: list[re.Match[str]] = []
    for row in reversed(rows):
        inline = list(_MARKED_INLINE.finditer(row.text))
        if not block and len(inline) > 1 and inline[0].start() == 0:
            return _by_marks([(found[1], found[2]) for found in inline], is_pointed=False)
        if found := _MARKED_ROW.match(row.text):
            block.append(found)
        elif block:
            break
    if len(block) < 2:
        return None
    is_pointed = any(found.start(1) for found in block)
    return _by_marks(
        [(found[1], _joined(found[2])) for found in reversed(block)], is_pointed=is_pointed
    )


def _by_marks(items: list[tuple[str, str]], *, is_pointed: bool) -> DrawnMenu:
    chosen = [
        text for mark, text in items if mark in _CHOSEN or mark in {"(*)", "(•)", "(x)", "(X)"}
    ]
    is_clear = len(chosen) == 1 and not is_pointed
    return DrawnMenu(tuple(text for _, text in items), chosen[0] if is_clear else None)


def _pointed(rows: list[_Row]) -> DrawnMenu | None:
    """Return rows of which one has a pointer before it, below a question."""
    for at in range(len(rows) - 1, -1, -1):
        if pointed := _POINTED_ROW.match(rows[at].text):
            break
    else:
        return None
    column = rows[at].column + len(pointed[1])
    first, last = at, at
    while first > 0 and _is_item(rows[first - 1], column):
        first -= 1
    while last + 1 < len(rows) and _is_item(rows[last + 1], column):
        last += 1
    if first == last or not _is_below_a_question(rows[:first]):
        return None
    labels = tuple(
        _joined(pointed[2] if row == at else rows[row].text) for row in range(first, last + 1)
    )
    return DrawnMenu(labels, labels[at - first])


def _is_item(row: _Row, column: int) -> bool:
    return row.column == column and bool(row.text)


def _is_below_a_question(rows: list[_Row]) -> bool:
    above = [row.text for row in rows[-2:] if row.text]
    return bool(above) and bool(_QUESTION.search(above[-1]) or CHOOSING.search(above[-1]))


def _boxed(
    lines: Sequence[str], rows: list[_Row], cursor_row: int, cursor_column: int
) -> DrawnMenu | None:
    """Return the rows of a list box above buttons: in a frame of its own, or under the cursor."""
    framed = [
        row for line, row in zip(lines, rows, strict=True) if line.count("│") == 4 and row.text
    ]
    if len(framed) > 1 and all(_TAGGED.match(row.text) for row in framed):
        return DrawnMenu(tuple(_joined(row.text) for row in framed), None)
    if not 0 <= cursor_row < len(rows) or rows[cursor_row].column != cursor_column:
        return None
    first = last = cursor_row
    while first > 0 and _is_item(rows[first - 1], cursor_column):
        first -= 1
    while last + 1 < len(rows) and _is_item(rows[last + 1], cursor_column):
        last += 1
    labels = tuple(_joined(row.text) for row in rows[first : last + 1])
    return DrawnMenu(labels, labels[cursor_row - first]) if len(labels) > 1 else None


def _joined(text: str) -> str:
    return " ".join(text.split())
