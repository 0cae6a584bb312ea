"""Lists that a program printed above its prompt: each item has a number or a letter."""

import re
from collections.abc import Callable
from typing import Final, NamedTuple

from projects.sessions.asked.brackets import Group
from projects.sessions.asked.words import CHOOSING

_LABEL: Final = r"[0-9]{1,3}|[a-zA-Z]"
_MARK: Final = r"(?:\s*\*(?=\s))"
_ITEM: Final = re.compile(
    rf"(?:^{_MARK}?|(?<=  )|(?<=\t))\s*"
    rf"(?:[\[(]({_LABEL})[\])][.:]?|({_LABEL})(?:[).:]| [=-]))(?=\s+\S)"
)
_COLUMN_ITEM: Final = re.compile(rf"^(?:[*>]\s|\s)\s*({_LABEL})\s{{2,}}\S")
_TOLD_ITEM: Final = re.compile(
    r"\s*(?:use|type|press|enter) ['\"`‘“](\w{1,2})['\"`’”] (?:to|for) \w", re.IGNORECASE
)
_IS_DEFAULT: Final = re.compile(
    r"(?:\((?:the )?default\b[^()]*\)|\[default\]|\*default\*|<-+ ?default|\(press enter\))\s*\Z",
    re.IGNORECASE,
)
_STARRED: Final = re.compile(_MARK)
_IN_BRACKETS: Final = re.compile(r"[\[(]([0-9]{1,3}|[a-zA-Z])[\])]\Z")
_BESIDE: Final = re.compile(
    r"(?:[(\[] ?(?:(?:or|press|enter|type|use) ){0,2}(?:['\"`](\w{1,12})['\"`]|(\w))"
    r"|, ?(?:(?:or|press|enter|type|use) ){1,2}['\"`](\w{1,12})['\"`]) (?:to|for) [^\W\d_]",
    re.IGNORECASE,
)
"""An answer beside those of a list, with what it is for."""
_AFTER_RANGE: Final = re.compile(
    r"[\[(]\d{1,3} ?- ?\d{1,3}(?:[,/|]|,? or) ?['\"]?([^\W\d_])['\"]?[\])]"
)
_IS_HINT: Final = re.compile(
    r"\s*(?:\((?:enter|select|choose)\b[^()]*\)|[-=_]{3,200})?\s*\Z", re.IGNORECASE
)
"""A line below a list in columns that is empty, a rule, or says how to answer."""
_BARE: Final = re.compile(r"\s*#?[>?:]\s*\Z")
_HEADING_DEFAULT: Final = re.compile(r"\[([^\[\]]{1,60})\]\s?[:：]?\s*\Z")
_KEEPS_MARKED: Final = "[*]"
_MARKED_ITEM: Final = re.compile(rf"^\*\s+({_LABEL})\s{{2,}}\S")
_DEMANDS_SOMETHING: Final = re.compile(r"[^\W\d_]+(?: [^\W\d_]+){1,4}\s?[:：]\s*\Z")
_NAMED_POINTER: Final = re.compile(r"[A-Z][a-z]{2,20}> ?\Z")
_MOST_LINES_BETWEEN: Final = 2
_MOST_BLANK_LINES: Final = 3
_MOST_MARKED_LINES: Final = 20
_MOST_NUMBERS: Final = 40


class Menu(NamedTuple):
    """The labels of the items in their order, and the one that is marked as the default.

    ``texts`` are those of the items, in the same order, if each has a line of its own.
    ``marked`` is the label of the one item with a star before it.
    """

    labels: tuple[str, ...]
    default: str | None
    texts: tuple[str, ...] = ()
    marked: str | None = None


def menu_above(lines: list[str]) -> Menu | None:
    """Return the list that stands directly above the prompt, if there is one."""
    for find in (_items, _column_items, _told_items):
        start, block = _block(lines, find)
        if (menu := _menu(block, find)) is not None:
            heading = lines[start - 1] if start else ""
            return menu._replace(default=menu.default or _heading_default(heading, menu, block))
    return None


def columns_above(lines: list[str]) -> Menu | None:
    """Return the list above the prompt if it stands in columns, as lists of steps do not."""
    told = (at for at in range(len(lines), 0, -1) if not _IS_HINT.match(lines[at - 1]))
    end = next(told, 0)
    if len(_items(lines[end - 1] if end else "")) < 2:
        return None
    return menu_above(lines[:end])


def can_ask_for_columns(line: str) -> bool:
    """Return whether the prompt is a few words and a colon, as below a list in columns."""
    return bool(_DEMANDS_SOMETHING.match(line.strip()) or _NAMED_POINTER.match(line))


def keeps_marked_item(line: str, lines: list[str]) -> str | None:
    """Return the marked item above, if the prompt says that Enter keeps the one with ``[*]``."""
    if _KEEPS_MARKED not in line:
        return None
    marked = list(filter(None, map(_MARKED_ITEM.match, lines[-_MOST_MARKED_LINES:])))
    return str(marked[0][1]) if len(marked) == 1 else None


def may_choose(line: str) -> bool:
    """Return whether the words of the prompt allow that it asks for an item of a list above it."""
    return bool(CHOOSING.search(line) or _BARE.match(line) or _KEEPS_MARKED in line)


def labels_within(menu: Menu, numbers: range | None) -> tuple[str, ...]:
    """Return the labels, or the numbers of the range if it has them all, such as 0 for none."""
    if numbers is None or not all(label.isdecimal() for label in menu.labels):
        return menu.labels
    is_wider = len(menu.labels) <= len(numbers) <= _MOST_NUMBERS
    is_wider = is_wider and all(int(label) in numbers for label in menu.labels)
    return tuple(map(str, numbers)) if is_wider else menu.labels


def item_named(line: str, named: str, menu: Menu) -> str | None:
    """Return the item that a default names: its label, also in brackets, or its text."""
    in_brackets = _IN_BRACKETS.search(named)
    label = str(in_brackets[1]) if in_brackets else named
    if label in menu.labels:
        return label
    texts = [text.casefold() for text in menu.texts]
    if named.casefold() not in texts or not may_choose(line):
        return None
    label = menu.labels[texts.index(named.casefold())]
    return label if label == menu.marked else named


def number_alone(line: str, groups: list[Group], menu: Menu) -> str | None:
    """Return the number of an item that stands alone in the last brackets of a prompt."""
    last = groups[-1].text if groups and may_choose(line) else ""
    return last if last.isdecimal() and last in menu.labels else None


def with_answers_beside(line: str, labels: tuple[str, ...]) -> tuple[str, ...]:
    """Return the labels, and the answers that a prompt such as ``Which ("q" to quit)`` adds."""
    beside = [str(found[1] or found[2] or found[3]) for found in _BESIDE.finditer(line)]
    after = _AFTER_RANGE.search(line)
    beside += [str(after[1])] if after else []
    return tuple(dict.fromkeys((*labels, *beside)))


def asks_to_choose(line: str, menu: Menu, named: str | None, numbers: range | None) -> bool:
    """Return whether the prompt asks for an item of the list above it.

    ``named`` is the item that the prompt names, ``numbers`` the range that it names.
    """
    is_own = named is not None or (numbers and str(numbers[-1]) in menu.labels)
    return bool(is_own) or may_choose(line)


def _items(line: str) -> list[str]:
    return [found[1] or found[2] for found in _ITEM.finditer(line)]


def _column_items(line: str) -> list[str]:
    found = _COLUMN_ITEM.match(line)
    return [found[1]] if found else []


def _told_items(line: str) -> list[str]:
    """Return the answer of a line such as ``Use 'd' to delete it``."""
    found = _TOLD_ITEM.match(line)
    return [str(found[1])] if found else []


def _block(lines: list[str], find: Callable[[str], list[str]]) -> tuple[int, list[str]]:
    """Return the nearest lines with items, from the top, and the place of the first."""
    block: list[str] = []
    start = between = blank = 0
    for at, line in reversed(list(enumerate(lines))):
        if find(line):
            block.append(line)
            start = at
        elif block:
            break
        elif line.strip():
            between += 1
        else:
            blank += 1
        if between > _MOST_LINES_BETWEEN or blank > _MOST_BLANK_LINES:
            break
    return start, block[::-1]


def _heading_default(heading: str, menu: Menu, block: list[str]) -> str | None:
    """Return the default that the line above the list names, if it is an item of the list."""
    found = _HEADING_DEFAULT.search(heading)
    if found is None:
        return None
    texts = [line.split(None, 1)[-1].strip() for line in block]
    return str(found[1]) if found[1] in menu.labels or found[1] in texts else None


def _menu(block: list[str], find: Callable[[str], list[str]]) -> Menu | None:
    labels = [label for line in block for label in find(line)]
    numbers = [int(label) for label in labels if label.isdecimal()]
    is_counted = not numbers or (
        min(numbers) in {0, 1}
        and (min(numbers) + 1 in numbers or (numbers == sorted(numbers) and len(block) > 2))
        and len(set(numbers)) == len(numbers)
    )
    if len(labels) < 2 or len(set(labels)) != len(labels) or not is_counted:
        return None
    defaults = [find(line)[0] for line in block if _IS_DEFAULT.search(line)]
    has_columns = len(labels) > len(block)
    in_order = sorted(labels, key=int) if has_columns and len(numbers) == len(labels) else labels
    texts = () if has_columns else tuple(map(_text, block))
    default = defaults[0] if len(defaults) == 1 else None
    marked = [find(line)[0] for line in block if _STARRED.match(line)]
    return Menu(tuple(in_order), default, texts, marked[0] if len(marked) == 1 else None)


def _text(line: str) -> str:
    """Return what a line with one item has after its label."""
    found = _ITEM.match(line)
    return line[found.end() :].strip() if found else ""
