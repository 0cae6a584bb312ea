"""Lists that a program printed above its prompt: each item has a number or a letter."""

import re
from collections.abc import Callable
from typing import Final, NamedTuple

from projects.sessions.asked.words import CHOOSING

_LABEL: Final = r"[0-9]{1,3}|[a-zA-Z]"
_ITEM: Final = re.compile(
    rf"(?:^|(?<=  )|(?<=\t))\s*(?:[\[(]({_LABEL})[\])][.:]?|({_LABEL})(?:[).:]| [=-]))(?=\s+\S)"
)
_COLUMN_ITEM: Final = re.compile(rf"^(?:[*>]\s|\s)\s*({_LABEL})\s{{2,}}\S")
_IS_DEFAULT: Final = re.compile(r"\((?:the )?default\b[^()]*\)\s*\Z", re.IGNORECASE)
_BARE: Final = re.compile(r"\s*#?[>?:]\s*\Z")
_MOST_LINES_BETWEEN: Final = 2
_MOST_BLANK_LINES: Final = 3


class Menu(NamedTuple):
    """The labels of the items in their order, and the one that is marked as the default."""

    labels: tuple[str, ...]
    default: str | None


def menu_above(lines: list[str]) -> Menu | None:
    """Return the list that stands directly above the prompt, if there is one."""
    for find in (_items, _column_items):
        if (menu := _menu(_block(lines, find), find)) is not None:
            return menu
    return None


def may_choose(line: str) -> bool:
    """Return whether the words of the prompt allow that it asks for an item of a list above it."""
    return bool(CHOOSING.search(line) or _BARE.match(line))


def asks_to_choose(line: str, menu: Menu, named: str | None, numbers: range | None) -> bool:
    """Return whether the prompt asks for an item of the list above it.

    ``named`` is the default that the prompt names, ``numbers`` the range that it names.
    """
    if named is not None and named not in menu.labels:
        return False
    is_own = named is not None or (numbers and str(numbers[-1]) in menu.labels)
    return bool(is_own) or may_choose(line)


def _items(line: str) -> list[str]:
    return [found[1] or found[2] for found in _ITEM.finditer(line)]


def _column_items(line: str) -> list[str]:
    found = _COLUMN_ITEM.match(line)
    return [found[1]] if found else []


def _block(lines: list[str], find: Callable[[str], list[str]]) -> list[str]:
    """Return the nearest lines with items, from the top."""
    block: list[str] = []
    between = blank = 0
    for line in reversed(lines):
        if find(line):
            block.append(line)
        elif block:
            break
        elif line.strip():
            between += 1
        else:
            blank += 1
        if between > _MOST_LINES_BETWEEN or blank > _MOST_BLANK_LINES:
            break
    return block[::-1]


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
    in_order = (
        sorted(labels, key=lambda label: (not label.isdecimal(), int(label)))
        if numbers and len(numbers) == len(labels)
        else labels
    )
    return Menu(tuple(in_order), defaults[0] if len(defaults) == 1 else None)
