"""The words that a shell expands, such as ``~/a``, ``$d/a`` and ``{a,b}``, spelled out.

The result is for naming files, never for running: an alternative too many does no harm. A pattern
such as ``a*`` stays one, because only the host knows what it matches.
"""

import re
import shlex
from collections.abc import Iterator
from dataclasses import replace
from itertools import islice, product
from math import prod
from typing import Final

from controller_client.command_policy.shell_grammar import Expanded, Words
from controller_client.command_policy.survey import Survey

MAX_ALTERNATIVES: Final = 32
MAX_CHARS: Final = 4096
"""No longer word is spelled out, which is the longest path of most hosts."""
MAX_PATTERNS: Final = 32
"""No more patterns of a line are matched with what is there."""
_MAX_BRACES: Final = 8
Values = dict[str, tuple[str, ...]]
"""The texts that each variable may hold."""
_VARIABLE: Final = re.compile(r"\$(?:([A-Za-z_]\w*)|\{([A-Za-z_]\w*)\})")
_HERE: Final = re.compile(r"\$\(pwd\)|`pwd`|\$PWD\b|\$\{PWD\}")
_BRACES: Final = re.compile(r"\{([^{},]*(?:,[^{},]*)+)\}")
_AT_HOME: Final = re.compile(r"^~(?=/|$)|\$HOME\b|\$\{HOME\}")
_OPEN: Final = re.compile(r"[$`~]")
_PATTERN: Final = re.compile(r"[*?\[]")
TRANSPARENT: Final = frozenset({"builtin", "command", "time"})
"""They run the builtin that their operands name."""
# They set variables to what the line does not tell.
_SETTERS: Final = frozenset({"getopts", "mapfile", "printf", "read", "readarray", "unset"})


def spelled_out(survey: Survey, home: str, outer: Values) -> Survey:
    """The survey with the words that can be told in the place of those that a shell expands.

    A command whose words have several alternatives becomes several commands. ``outer`` are the
    values of the lines around this one. ``home`` stands for ``~``.
    """
    known = known_values(survey, home, outer)
    commands = tuple(
        alternative for words in survey.commands for alternative in _told(words, home, known)
    )
    reads = (path for word in survey.reads for path in _spellings(word, home, known) or (word,))
    told = ((name, value) for name, values in known.items() for value in values)
    return replace(survey, commands=commands, reads=tuple(reads), values=tuple(told))


def is_pattern(word: str) -> bool:
    """Return whether a shell would look for names like the last part of the word."""
    return _PATTERN.search(word.rpartition("/")[2]) is not None


def known_values(survey: Survey, home: str, outer: Values) -> Values:
    """Return what each variable may hold, of this line and of the lines around it."""
    found, unknown = dict(outer), set[str]()
    for name, value in survey.values:
        if name in unknown:
            continue
        alternatives = _spellings(value, home, found)
        found[name] = (*found.get(name, ()), *alternatives)
        if not alternatives or len(found[name]) > MAX_ALTERNATIVES:
            unknown.add(name)
    is_told = not any(map(_sets_variables, survey.commands))
    return {name: held for name, held in found.items() if name not in unknown} if is_told else {}


def without_transparent(words: Words) -> Words:
    """Return the words of the builtin that ``command`` or ``builtin`` runs: ``command -p read``."""
    while words[0] in TRANSPARENT and len(words) > 1:
        # With another option ``command`` runs nothing.
        is_option = words[1] in {"-p", "--"} and len(words) > 2
        words = words[2 if is_option else 1 :]
    return words


def _sets_variables(words: Words) -> bool:
    name, *arguments = without_transparent(words)
    is_printf_of_text = name == "printf" and not any(
        not word or word.startswith("-v") for word in arguments
    )
    return name in _SETTERS and not is_printf_of_text


def _told(words: Words, home: str, values: Values) -> Iterator[Words]:
    alternatives = [_spellings(word, home, values) or (word,) for word in words]
    is_bounded = prod(map(len, alternatives)) <= MAX_ALTERNATIVES
    yield from product(*alternatives) if is_bounded else [words]


def _spellings(word: str, home: str, values: Values) -> tuple[str, ...]:
    """Return all that a word may expand to; nothing if that is not told, or too much."""
    if not isinstance(word, Expanded):
        return (word,)
    if len(word.text) > MAX_CHARS:
        return ()
    homes = (home, *values.get("HOME", ()))
    found = [_HERE.sub(".", place.join(_AT_HOME.split(word.text))) for place in homes]
    if sum(map(len, found)) > MAX_CHARS * MAX_ALTERNATIVES:
        return ()
    for name in dict.fromkeys(match[1] or match[2] for match in _VARIABLE.finditer(found[0])):
        parts = [re.split(rf"\$(?:{name}\b|\{{{name}\}})", each) for each in found]
        held = values.get(name, ())
        longest = max(map(len, held), default=0) * max(map(len, parts), default=0)
        is_bounded = longest + max(map(len, found), default=0) <= MAX_CHARS
        if len(parts) * len(held) > MAX_ALTERNATIVES or not is_bounded:
            return ()
        found = [to.join(part) for part in parts for to in held]
    spelled = (one for each in found for one in _braces_out(each))
    told = [_unquoted(one) for one in islice(spelled, MAX_ALTERNATIVES + 1)]
    return tuple(told) if all(told) and len(told) <= MAX_ALTERNATIVES else ()


def _braces_out(text: str, depth: int = 0) -> Iterator[str]:
    match = _BRACES.search(text) if depth < _MAX_BRACES else None
    if match is None:
        yield text
        return
    for part in match[1].split(","):
        yield from _braces_out(text[: match.start()] + part + text[match.end() :], depth + 1)


def _unquoted(text: str) -> str:
    """The text without its quotes; empty if something is left that only a shell could tell."""
    is_plain_ansi = text.startswith("$'") and "\\" not in text
    try:
        words = shlex.split(text[1:] if is_plain_ansi else text)
    except ValueError:
        return ""
    told = words[0] if len(words) == 1 else ""
    head, _, _ = told.rpartition("/")
    is_braced = "{" in told and ("," in told or ".." in told)
    return "" if is_braced or _OPEN.search(told) or _PATTERN.search(head) else told
