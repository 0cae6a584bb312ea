"""The answers that sentences and lists of words tell, where no brackets hold them."""

import re
from typing import Final

from projects.sessions.asked.answers import Options
from projects.sessions.asked.brackets import Group, groups_at_end
from projects.sessions.asked.confirmation import TYPE
from projects.sessions.asked.letters import by_their_letters
from projects.sessions.asked.words import NO_VALUES, OR, means_yes_and_no

_QUOTE: Final = r"['\"`‘’“”«»„]"
_FIRST: Final = re.compile(
    rf"(?:{TYPE.pattern}|\bpress) {_QUOTE}(\w{{1,12}}){_QUOTE}", re.IGNORECASE
)
_NEXT: Final = re.compile(
    rf"(?:,|(?<=\s)(?:{OR}|and)) (?:type |enter |press )?{_QUOTE}(\w{{1,12}}){_QUOTE}",
    re.IGNORECASE,
)
_FOR_YES: Final = re.compile(
    r"\b([a-z]) (?:for|=|means) yes,? (?:or |and )?([a-z]) (?:for|=|means) no\b", re.IGNORECASE
)
_QUOTED: Final = re.compile(rf"{_QUOTE}(\w{{1,12}}){_QUOTE}")
_LISTED: Final = re.compile(
    rf"\b(?:type|enter|answer|choose|select|reply|respond with) (?:either )?"
    rf"({_QUOTE}\w{{1,12}}{_QUOTE}(?:(?:,|,? (?:{OR})) {_QUOTE}\w{{1,12}}{_QUOTE}){{1,12}})"
    r"\s?[:?.]\s*\Z",
    re.IGNORECASE,
)
"""Answers in quotes, with nothing but commas between them."""
_PRESS: Final = re.compile(
    r"\b[Pp]ress ([A-Z]) (?:to|for) [^,.:;()]{1,40}?,? or (?:[Pp]ress )?([A-Z])"
    r" (?:to|for) [^,.:;()]{1,40}[.:]?\s*\Z"
)
_WITH_LETTER: Final = re.compile(r"(\w) (\w)[\w-]{1,20}\Z")
_LEADER: Final = re.compile(r"\s*(?:>> )?")
_WITH_HALF: Final = re.compile(r"(\S)\)([a-z]\w{0,20})")
_HALVES: Final = re.compile(r"\s*\S\)[a-z][^,()]{1,60}(?:, \S\)[a-z][^,()]{1,60}){1,12}\s*\Z")
_OFFERS: Final = re.compile(r"\byou can\b|\boptions\b", re.IGNORECASE)
_TO_DO: Final = re.compile(r"what (?:do|would) you (?:want|like) to do\s?\?\s*\Z", re.IGNORECASE)
_TO_LEAVE: Final = re.compile(
    r"\s*\((?:enter|press|type|use) ['\"`]?(\w{1,6})['\"`]? to (?:cancel|quit|abort|exit|go back)\)"
    r"\s*:?\s*\Z",
    re.IGNORECASE,
)
_POINTER: Final = re.compile(r"\s*[>❯›]\s*\Z")
_ASKING: Final = re.compile(r"\s|(?:please )?enter\b|(?:what|which)\b", re.IGNORECASE)
_TAKEN: Final = re.compile(r"\s*(y|yes|n|no): ?:\s*\Z", re.IGNORECASE)
_SEVERAL_WORDS: Final = re.compile(r"[A-Z][\w.&-]{0,30}(?: [\w.&-]{1,30}){1,6}\Z")
_TELLS: Final = re.compile(
    r"\b(?:default|enter|press|return|optional|leave|empty|blank|char\w*|letters?|required|max|min"
    r"|none|e\.g|eg|name)\b",
    re.IGNORECASE,
)
_NAME_TAKEN: Final = re.compile(r"(?:^|\s)name \(([a-z][a-z0-9._-]{1,40})\):\s*\Z", re.IGNORECASE)
_KIND_OF_NAME: Final = re.compile(
    r"(?:optional|required|unique|lower-?case|upper-?case|alpha\w*|slug|english|full|short|public"
    r"|private|singular|plural|human\w*|display|first|last|legal|local|internal|needed|any|none)\Z",
    re.IGNORECASE,
)
_SENTENCE: Final = re.compile(r"[A-Z][a-z]{1,20}(?: [a-z]{1,20}){1,6}\Z")
_RETURN_FOR: Final = re.compile(
    r"\bor (?:press )?(?:return|enter) for (?:the default )?((?:/|~/|\./)\S{1,200}|\d{1,12})"
    r"\)?\s?:\s*\Z",
    re.IGNORECASE,
)
_PROGRAM: Final = re.compile(r"\s*(?:==> )?([A-Za-z][\w.-]{0,30}): (?=\S)")
_MOST_LINES: Final = 3


def told_in(line: str) -> Options | None:
    """Return the answers of a line such as ``Type 'yes' to go on, or 'no' to stop: ``."""
    first = _FIRST.search(line)
    if (listed := _LISTED.search(line)) is not None:
        answers = tuple(_QUOTED.findall(listed[1]))
        return Options(answers) if len(set(answers)) == len(answers) else None
    if first is None:
        pressed = _PRESS.search(line) or _FOR_YES.search(line)
        is_all = pressed and "for help" not in line
        return Options((str(pressed[1]), str(pressed[2]))) if pressed and is_all else None
    others = {str(found[1]) for found in _NEXT.finditer(line, first.end())}
    answers = (str(first[1]), *others)
    return Options(answers) if len(answers) == 2 and means_yes_and_no(set(answers)) else None


def told_above(lines: list[str]) -> Options | None:
    """Return the yes and the no that one of the nearest lines above wants typed."""
    near = [line for line in lines if line.strip()][-_MOST_LINES:]
    return next(filter(None, map(told_in, reversed(near))), None)


def words_with_letters(line: str, above: list[str]) -> Options | None:
    """Return the letters of a line such as ``k keep, d drop: ``, and of such lines above it."""
    own = _letters_before(line)
    if not line.rstrip().endswith(":") or len(own) < 2:
        return None
    for earlier in reversed(above):
        before = _letters_before(earlier)
        if not before:
            break
        own = before + own
    return Options(tuple(own)) if len(set(own)) == len(own) else None


def may_have_words_with_letters(line: str) -> bool:
    """Return whether the line is a list of words, each after its own letter."""
    return line.rstrip().endswith(":") and len(_letters_before(line)) > 1


def _letters_before(line: str) -> list[str]:
    """Return the letters of words with commas between, if each begins its word."""
    parts = _LEADER.sub("", line.strip(), count=1).rstrip(": ").split(", ")
    found = [_WITH_LETTER.match(part) for part in parts]
    are_own = all(part and part[1].casefold() == part[2].casefold() for part in found)
    return [str(part[1]) for part in found if part] if are_own else []


def letters_above(line: str, groups: list[Group], above: list[str]) -> Options | None:
    """Return the letters that the line above explains to a question about what to do."""
    last = next((earlier for earlier in reversed(above) if earlier.strip()), "")
    named = groups[0].text if len(groups) == 1 and groups[0].opener == "(" else ""
    if _HALVES.match(last):
        words = {letter + rest: letter for letter, rest in _halves(last)}
        letters = tuple(letter for letter, _ in _WITH_HALF.findall(last))
        is_clear = named in words and len(set(letters)) == len(letters)
        return Options(letters, words[named]) if is_clear else None
    if not asks_what_to_do(line) or not _OFFERS.search(last):
        return None
    found = by_their_letters(last, groups_at_end(last))
    return found._replace(default=None) if found else None


def may_end_in_a_word(line: str, groups: list[Group]) -> bool:
    """Return whether a question ends in one whole word in brackets, as ``Action: (continue)``."""
    text = groups[0].text if len(groups) == 1 and groups[0].opener == "(" else ""
    is_word = len(text) > 1 and text.isalpha()
    return is_word and line[: groups[0].start].rstrip().endswith((":", "?"))


def _halves(line: str) -> list[tuple[str, str]]:
    return [(found[1], found[2]) for found in _WITH_HALF.finditer(line)]


def asks_what_to_do(line: str) -> bool:
    """Return whether the line asks a person what to do, and no more."""
    return bool(_TO_DO.search(line))


def without_way_to_leave(line: str) -> tuple[str, str] | None:
    """Return the line without a note such as ``(Enter 'c' to cancel)``, and the answer of it."""
    found = _TO_LEAVE.search(line)
    return (line[: found.start()].rstrip(), str(found[1])) if found else None


def is_a_pointer(line: str) -> bool:
    """Return whether the line is nothing but a pointer, below a line that asks."""
    return bool(_POINTER.match(line))


def asks_above_a_pointer(line: str, pointer: str) -> bool:
    """Return whether a line above a pointer asks for something, other than a line of output."""
    return bool(_ASKING.match(line)) and pointer.startswith((" ", ">"))


def taken_alone(line: str) -> str | None:
    """Return the yes or no of a line that is only ``Y: :``, which Enter takes."""
    found = _TAKEN.match(line)
    return str(found[1]) if found else None


def sentence_at_end(groups: list[Group]) -> str | None:
    """Return a default of several words, such as ``[Leave it for later]``."""
    last = groups[-1] if groups else None
    return last.text if last and last.opener == "[" and _SENTENCE.match(last.text) else None


def words_at_end(line: str, groups: list[Group]) -> str | None:
    """Return the default of a question for a text, which may have several words.

    A name in round brackets is one only after the word for it, as in ``Project name (demo): ``.
    """
    if (taken := _NAME_TAKEN.search(line)) is not None:
        return None if _KIND_OF_NAME.match(taken[1]) else str(taken[1])
    last = groups[-1] if groups else None
    if last is None or last.opener != "[" or line[last.end :].strip() != ":":
        return None
    is_words = _SEVERAL_WORDS.match(last.text) and not _TELLS.search(last.text)
    return last.text if is_words else None


def has_unknown_end(groups: list[Group]) -> bool:
    """Return whether the last square brackets hold words, which may or may not be a default."""
    last = groups[-1] if groups else None
    is_filled = last is not None and last.opener == "[" and bool(last.text)
    return is_filled and last is not None and last.text.casefold() not in NO_VALUES


def is_quoted_before(line: str, group: Group) -> bool:
    """Return whether the words in square brackets at the end stand in quotes before them."""
    quoted = [str(found[1]) for found in _QUOTED.finditer(line, 0, group.start)]
    return group.opener == "[" and group.text in quoted


def return_for(line: str) -> str | None:
    """Return the value that a line says Enter gives, as in ``or RETURN for /bin/sh: ``."""
    found = _RETURN_FOR.search(line)
    return str(found[1]) if found else None


def without_program(line: str, above: list[str]) -> list[str]:
    """Return the lines above without the name of a program that begins the prompt and them."""
    named = _PROGRAM.match(line)
    if named is None:
        return above
    own = re.compile(rf"\s*(?:==> )?{re.escape(named[1])}: ?")
    return [own.sub("", earlier, count=1) if own.match(earlier) else earlier for earlier in above]
