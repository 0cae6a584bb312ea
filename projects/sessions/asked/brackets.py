"""The bracketed parts of a line, and the defaults that they name."""

import re
from collections.abc import Iterator
from typing import Final, NamedTuple

from projects.sessions.asked.words import DEFAULTS, NO_VALUES

_OPENERS: Final = "[(<{（【"
_CLOSERS: Final = "])>}）】"
ENDING: Final = r"(?:[\s:?.!;>：？。؟›❯▸»→]|[-=]{1,3}>)*"
_IS_ENDING: Final = re.compile(ENDING + r"\Z")
DEFAULT: Final = re.compile(
    rf"(?:^|[,;，；、 ])\s*(?:the )?(?:{DEFAULTS})(?:s to| (?:is|ist|est|es|è|é|är|er))?"
    r"\s*[:=：＝ ]\s*"
    r"[\"'`]?([^\s\"'`,;]{1,200})[\"'`]?\s*\Z",
    re.IGNORECASE,
)

_DEFAULT_LAST: Final = re.compile(
    r"(?:^|[,;])\s*(\d{1,12})\s(?:par défaut|by default|por defecto|por omisión|per defecte"
    r"|als standaard|varsayılan)\s*\Z",
    re.IGNORECASE,
)


class Group(NamedTuple):
    """A pair of brackets in a line, with what it holds; ``start`` and ``end`` are around it."""

    start: int
    end: int
    text: str
    opener: str


def groups_at_end(line: str) -> list[Group]:
    """Return the bracketed parts that end the line, from left to right."""
    groups: list[Group] = []
    end = len(line)
    for group in reversed(list(_groups(line))):
        if not _IS_ENDING.match(line[group.end : end]):
            break
        groups.append(group)
        end = group.start
    return groups[::-1]


def _groups(line: str) -> Iterator[Group]:
    depth = start = 0
    for at, char in enumerate(line):
        if char in _OPENERS:
            start = start if depth else at
            depth += 1
        elif char in _CLOSERS and depth:
            depth -= 1
            # Braces at a word, as in size{K,M,G}, are a notation.
            if not depth and not (line[start] == "{" and line[start - 1 : start].strip()):
                yield Group(start, at + 1, line[start + 1 : at].strip(), line[start])


def default_in(text: str) -> str | None:
    """Return the value that a bracketed part calls the default."""
    named = DEFAULT.search(text) or _DEFAULT_LAST.search(text)
    return named[1] if named and named[1].casefold() not in NO_VALUES else None
