"""Menus that a program drew on the screen: rows with a pointer or marks, and rows of buttons."""

import re
from collections.abc import Sequence
from typing import Final, NamedTuple

from projects.sessions.asked.words import CHOOSING, means_yes_and_no

_BORDERS: Final = " \t│┃║▌|"
_POINTERS: Final = "❯›➤▸▶»→>"
_CHOSEN: Final = "●◉•"
_FULL: Final = frozenset({*_CHOSEN, "(*)", "(•)", "(x)", "(X)"})
_NOT_CHOSEN: Final = "○◯"
_BOXES: Final = "◻◼☐☑☒▢▣"
_MARK: Final = rf"[{_CHOSEN}{_NOT_CHOSEN}{_BOXES}]|\([ *•xX]\)|\[[ *xX]\]"
_MARKED_ROW: Final = re.compile(rf"(?:[{_POINTERS}] ?)?({_MARK})\s+(\S.*)\Z")
_MARKED_INLINE: Final = re.compile(rf"({_MARK})\s+([^{_CHOSEN}{_NOT_CHOSEN}/]{{1,40}}?)\s*(?:/|\Z)")
_POINTED_ROW: Final = re.compile(rf"([{_POINTERS}]\s+)(\S.*)\Z")
_SINGLE_POINTERS: Final = _POINTERS.replace(">", "") + _CHOSEN
_NUMBERED_ROW: Final = re.compile(rf"([{_SINGLE_POINTERS}]\s*)?(([1-9]\d?)[.)]\s+\S.*)\Z")
_NUMBER: Final = re.compile(r"\d+[.)]\s+")
_BUTTON: Final = re.compile(
    r"<\s*([^<>\s][^<>]{0,20}?)\s*>|\[\s{0,3}([^\W\d_][^\[\]|]{1,20}?)\s{0,3}\]"
)
_FRAMES: Final = "│┃║▊▎|"
_WORDS_IN_FRAME: Final = re.compile(
    rf"[^{_FRAMES}]*[{_FRAMES}]\s+(\w{{1,12}})\s{{2,40}}(\w{{1,12}})\s+[{_FRAMES}]\W*\Z"
)
_QUESTION: Final = re.compile(r"^[?◆◇]|[?？:：؟]\s*(?:[(\[].*)?\Z|[(\[]use |arrow", re.IGNORECASE)
_TAGGED: Final = re.compile(r"\S{1,20}\s+\S.*\Z")
MENU_SIGNS: Final = re.compile(
    r"[❯›➤▸▶»→●◉•○◯◻◼☐☑☒▢▣<┌╔╭▊]|> |\x1b\(0|\([ *xX]\)|\[[ *xX]\]|\[ {0,3}[^\W\d_]\w{1,12} {0,3}\]"
)
"""Without one of these no menu is read from a screen."""


class DrawnMenu(NamedTuple):
    """The labels of the rows or buttons, and the one that Enter takes, if the text shows it."""

    labels: tuple[str, ...]
    taken: str | None

    @property
    def are_yes_and_no(self) -> bool:
        """True if the labels mean yes and no."""
        return means_yes_and_no({_NUMBER.sub("", label) for label in self.labels})


class _Row(NamedTuple):
    column: int
    text: str


def drawn_menu(lines: Sequence[str], cursor_row: int, cursor_column: int) -> DrawnMenu | None:
    """Return the one menu of a screen, if there is one that text alone shows."""
    rows = [_without_border(line) for line in lines]
    buttons = _buttons(lines, cursor_row, cursor_column)
    if buttons is not None and buttons.are_yes_and_no:
        return buttons
    found = _words_in_a_frame(lines) or _marked(rows) or _numbered(rows) or _pointed(rows)
    if found is None and buttons is not None:
        found = _boxed(lines, rows, cursor_row, cursor_column)
    if found is None and buttons is not None and buttons.taken and len(buttons.labels) > 1:
        # The cursor is on a button, and so not in a field for text.
        return buttons
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
                    _label(button)
                    for button in buttons
                    if row == cursor_row and button.start() <= cursor_column < button.end()
                ),
                None,
            )
            return DrawnMenu(tuple(map(_label, buttons)), taken)
    return None


def _label(button: re.Match[str]) -> str:
    return str(button[1] or button[2])


def _words_in_a_frame(lines: Sequence[str]) -> DrawnMenu | None:
    """Return a yes and a no that stand alone in a row of a box, as buttons without marks do."""
    found = list(filter(None, map(_WORDS_IN_FRAME.match, lines)))
    labels = (str(found[0][1]), str(found[0][2])) if len(found) == 1 else ()
    return DrawnMenu(labels, None) if means_yes_and_no(set(labels)) else None


def _numbered(rows: list[_Row]) -> DrawnMenu | None:
    """Return rows with numbers from 1, of which one has a pointer before it.

    A long row can go on below, further to the right. A pointer or mark further down shows that
    the rows were typed before. A plain ``>`` quotes as well, so it needs the question of others.
    """
    for at in range(len(rows) - 1, -1, -1):
        pointed = _NUMBERED_ROW.match(rows[at].text)
        if pointed and pointed[1]:
            break
    else:
        return None
    column = rows[at].column + pointed.start(2)
    first = at
    while first > 0 and rows[first - 1].text and rows[first - 1].column >= column:
        first -= 1
    labels: list[str] = []
    for row in rows[first:]:
        found = _NUMBERED_ROW.match(row.text)
        is_next = found and int(found[3]) == len(labels) + 1
        if found and is_next and row.column + found.start(2) == column:
            labels.append(_joined(found[2]))
        elif row.text and row.column > column and labels:
            labels[-1] += f" {_joined(row.text)}"
        elif labels:
            break
    if any(row.text[:1] in _SINGLE_POINTERS for row in rows[at + 1 :] if row.text):
        return None
    number = int(pointed[3])
    taken = labels[number - 1] if number <= len(labels) else None
    return DrawnMenu(tuple(labels), taken) if taken and len(labels) > 1 else None


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
    is_pointed = any(found.start(1) and found[1] not in _FULL for found in block)
    return _by_marks(
        [(found[1], _joined(found[2])) for found in reversed(block)], is_pointed=is_pointed
    )


def _by_marks(items: list[tuple[str, str]], *, is_pointed: bool) -> DrawnMenu:
    chosen = [text for mark, text in items if mark in _FULL]
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
