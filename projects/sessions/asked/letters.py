"""The answers that a prompt spells out by their letters, as in ``(R)eject or [q]uit``."""

import re
from typing import Final

from projects.sessions.asked.answers import FEW, Options, few_of, in_capitals
from projects.sessions.asked.brackets import Group, default_in
from projects.sessions.asked.words import means_yes_and_no

# Chinese, Japanese and Korean put a blank before brackets, but none between words.
_ITS_LETTER: Final = re.compile(
    r"(?P<before>[\u3040-\u30ff\u4e00-\u9fff\uac00-\ud7af] ?|\w?)"
    r"(?:[\[(（](?P<letter>[^\W\d_]|\?|(?<=[,:?] .)[^\W\d_]{2,3}(?=[\])] \w))[\])）]"
    r"(?P<after>[ -]?\w?)|<(?P<tag>[^\W\d_])>(?=\w))"
)
_PREFILLED: Final = re.compile(r"[a-z]\(.\)\s.{0,200}[\])]\s+([a-z]{1,3}):\s*\Z")
"""Letters between the last answer and the colon, which Enter takes."""
_BEGINS_WITH_A_LETTER: Final = re.compile(r"\s*[\[(（<][^\W\d_]{1,3}[\])）>]")
_AFTER_ITS_WORD: Final = re.compile(r"\b(\w)\w{1,20} [\[(](\w)[\])](?=[,/|:?]|\s)")
_STROKE_BETWEEN: Final = re.compile(r"[\])]\w*\s?[/|]\s?[\[(]")


def by_their_letters(line: str, groups: list[Group]) -> Options | None:
    """Return the answers of a line such as ``(R)eject or [q]uit``."""
    if "</" in line:
        return None
    letters = [
        str(found["letter"] or found["tag"])
        for found in _ITS_LETTER.finditer(line)
        if found["tag"] or found["before"] or found["after"].strip(" -")
    ]
    letters = [letter for letter in letters if _is_typed(letter)]
    letters = letters if len(letters) > 1 else _after_their_words(line)
    if len(letters) < 2 or len(set(letters)) != len(letters):
        return None
    answers = tuple(letters)
    last = groups[-1].text if groups else ""
    if len(last) == 1 and last.isalpha() and last.casefold() not in map(str.casefold, answers):
        # One more answer, whose letter stands apart from its word.
        return None
    return Options(answers, _default_letter(line, groups, answers))


def begins_with_a_letter(line: str) -> bool:
    """Return whether the line begins with an answer in brackets, as a list goes on below a line."""
    return bool(_BEGINS_WITH_A_LETTER.match(line))


def _after_their_words(line: str) -> list[str]:
    """Return the letters of a line such as ``Keep (k), drop (d)?``, each after its own word."""
    found = list(_AFTER_ITS_WORD.finditer(line))
    are_own = all(word[1].casefold() == word[2].casefold() for word in found)
    return [str(word[2]) for word in found] if are_own else []


def is_all_answers(line: str, answers: tuple[str, ...]) -> bool:
    """Return whether ``(r)eject, accept (o)nce`` or the like is the line, or follows its question.

    Letters in the order of the alphabet number the parts of a text.
    """
    is_numbered = "".join(answers).casefold() in "abcdefghijklmnopqrstuvwxyz"
    first = _ITS_LETTER.search(line)
    before = line[: first.start()].rstrip() if first else line
    begins = not before or before.endswith(("?", "？", ":"))
    return begins and len(answers) >= FEW and not is_numbered


def _default_letter(line: str, groups: list[Group], answers: tuple[str, ...]) -> str | None:
    """Return the letter that the last group calls the default, or begins as a word.

    Else it is the one capital, unless that may begin a sentence.
    """
    last_group = groups[-1].text if groups else ""
    if (named := default_in(last_group)) is not None:
        return named if named in answers else None
    brackets = [found["letter"] for found in _ITS_LETTER.finditer(line)]
    if _is_repeated(last_group, brackets):
        return last_group
    prefilled = _PREFILLED.search(line)
    if prefilled and prefilled[1][0] in answers:
        return str(prefilled[1])
    if len(last_group) > 1 and last_group.isalpha():
        meant = [answer for answer in answers if answer.casefold() == last_group[0].casefold()]
        return meant[0] if len(meant) == 1 else None
    return _letter_that_stands_out(line, groups, answers)


def _is_repeated(letter: str, brackets: list[str | None]) -> bool:
    """Return whether the letter of the last brackets stands in brackets before, in any case."""
    folded = [bracket.casefold() for bracket in brackets if bracket]
    return len(letter) == 1 and folded.count(letter.casefold()) > 1


def _letter_that_stands_out(line: str, groups: list[Group], answers: tuple[str, ...]) -> str | None:
    """Return the yes or the no in square brackets beside round ones, or the one capital."""
    square = [str(found["letter"]) for found in _ITS_LETTER.finditer(line) if "[" in found[0]]
    has_round = "(" in line or "（" in line
    if len(square) == 1 and square[0] == answers[0] and len(answers) > FEW:
        return square[0] if has_round else None
    if len(square) == 1 and has_round and means_yes_and_no(set(answers[:2])):
        return square[0] if square[0] in answers[:2] else None
    is_listed = any(len(_ITS_LETTER.findall(group.text)) > 1 for group in groups)
    if is_listed or means_yes_and_no(set(answers)):
        return in_capitals(answers)
    if len(_STROKE_BETWEEN.findall(line)) >= len(answers) - 1:
        return in_capitals(answers, few=0 if answers[0].isupper() else few_of(answers))
    return None


def _is_typed(letter: str) -> bool:
    # Letters of scripts without capitals stand for a variant of the word, not for an answer.
    return letter == "?" or letter.lower() != letter.upper()
