"""The answers that a prompt spells out: in brackets, with strokes between, or by their letters."""

import re
from typing import Final, NamedTuple

from projects.sessions.asked.brackets import DEFAULT, ENDING, Group, default_in
from projects.sessions.asked.words import (
    CHOOSING,
    OR,
    are_opposites,
    is_a_yes_or_a_no,
    is_short_for,
    means_yes_and_no,
)

_SEPARATORS: Final = (",", "/", "|")
_WITH_A_WORD: Final = re.compile(r"(?P<demand>\S.{0,30} )??(\S{1,12}) \S{1,8} (\S{1,12})\Z")
_WITH_AN_OR: Final = re.compile(rf"(\w) (?:{OR}) (\w)\Z", re.IGNORECASE)
_LAST_TWO: Final = re.compile(rf"\s*(?:(\S{{1,24}}) )?(?:{OR}) (\S{{1,24}})\s*\Z", re.IGNORECASE)
_QUOTED: Final = re.compile(r"['\"`‘“«„](?:\s?)([^\s'\"`‘’“”«»„]{1,24})(?:\s?)['\"`’”»“]\Z")
_OR_AT_END: Final = re.compile(
    rf"(?:^|[\s'\"`‘“«„])(\w{{1,12}})['\"`’”»“]? (?:{OR}) ['\"`‘“«„]?(\w{{1,12}})['\"`’”»“]?"
    r"\s?[:?>：？]\s*\Z",
    re.IGNORECASE,
)
_SPACED: Final = re.compile(r"(\w{1,3}[:=]\s?\w+) (\w{1,3}[:=]\s?\w+)\Z")
_HALF_BRACKETED: Final = re.compile(
    rf"(?:^|\s)(?:\[(\w{{1,12}})\]/(\w{{1,12}})|(\w{{1,12}})/\[(\w{{1,12}})\]){ENDING}\Z"
)
_ITS_REST: Final = re.compile(r"(\w)\(\w{1,12}\)\Z")
_NUMBERED: Final = re.compile(r"(?<![^\s,;(\[])(\d)\s?=\s?[^\W\d_]\w+")
_TWO_LANGUAGES: Final = re.compile(r"(\S{1,12}/\S{1,12}) \S{1,8}(?: \S{1,8})? \S{1,12}/\S{1,12}\Z")
_MEANING: Final = re.compile(r"([^\s=:-]{1,8})\s?(?:=|:|-|–|—|pro|for)\s?([^\s=:-]{1,12})\Z")
_OWN_MEANING: Final = re.compile(r"(?:[^\W\d_]\s?=\s?[^\W\d_][^=/|]{1,30}|[^\W\d_]{1,12})\Z")
_OPTION: Final = re.compile(r"[^\s\[\](){}<>\"'`„“”«»=;\\]{1,24}\Z")
_IS_ASKING: Final = re.compile(r"[:?>：？؟]")
# Chinese, Japanese and Korean put a blank before brackets, but none between words.
_ITS_LETTER: Final = re.compile(
    r"(?P<before>[\u3040-\u30ff\u4e00-\u9fff\uac00-\ud7af] ?|\w?)"
    r"(?:[\[(（](?P<letter>[^\W\d_]|\?|(?<=[,:?] .)[^\W\d_]{2,3}(?=[\])] \w))[\])）]"
    r"(?P<after>[ -]?\w?)|<(?P<tag>[^\W\d_])>(?=\w))"
)
_BEGINS_WITH_A_LETTER: Final = re.compile(r"\s*[\[(（<][^\W\d_]{1,3}[\])）>]")
_AFTER_ITS_WORD: Final = re.compile(r"\b(\w)\w{1,20} [\[(](\w)[\])](?=[,/|:?]|\s)")
_STROKE_BETWEEN: Final = re.compile(r"[\])]\w*\s?[/|]\s?[\[(]")
_STROKES: Final = re.compile(
    rf"(?:^|(?<=\s))([^\s/]{{1,24}}(?: ?/ ?[^\s/]{{1,24}}){{1,12}}?){ENDING}\Z"
)
_LETTERS: Final = re.compile(
    r"(?:(?:yn|Yn|yN|nY)[a-z]{0,10}[A-Z]?[a-z]{0,10}\??|(?i:yn|ny|jn|nj)"
    r"|(?=[a-z]*y)(?=[a-z]*n)[a-z]{3,12}\?|ny[aedhq]{1,5}|12[3-9]{0,7}[a-z]{0,3}\?[a-z]{0,3})\Z"
)
"""Letters that stand side by side: a yes, a no, and more; or numbers and a question mark."""
_IS_DEMAND: Final = re.compile(r"\b(?:enter|type|press|set|use)\b", re.IGNORECASE)
_FEW: Final = 3


class Options(NamedTuple):
    """The answers as a prompt spells them; ``are_all`` is False if it leaves some out."""

    answers: tuple[str, ...]
    default: str | None = None
    are_all: bool = True

    @property
    def are_yes_and_no(self) -> bool:
        """True if they mean yes and no, whether or not a question mark shows help."""
        return means_yes_and_no(set(self.answers) - {"?"})


def options_in(line: str, groups: list[Group]) -> Options | None:
    """Return the answers that the line spells out, if it does."""
    asks = bool(_IS_ASKING.search(line[groups[0].start - 2 if groups else -2 :]))
    if (lettered := _by_their_letters(line, groups)) is not None and (
        asks or lettered.default is not None or _is_all_answers(line, lettered.answers)
    ):
        return lettered
    for at, group in reversed(list(enumerate(groups))):
        found = _in_group(group.text)
        if found is None:
            continue
        if found.default is None:
            told = [rest.text for rest in groups[:at] if default_in(rest.text) is not None]
            beside = [rest.text for rest in groups[at + 1 :]] + told
            named = (_named(text, found.answers) for text in beside)
            found = found._replace(default=next(filter(None, named), None))
        is_told = bool(_WITH_AN_OR.match(group.text)) or _has_meanings(_between_strokes(group.text))
        return found if _is_certain(found, asks=asks, is_told=is_told) else None
    if (numbered := _with_numbers(line, groups)) is not None:
        return numbered
    if half := _half_bracketed(line):
        return half
    found = _with_strokes(line[: groups[0].start] if groups else line)
    if groups and found is not None:
        # Something else in the brackets may change what the words before them mean.
        defaults = (_named(group.text, found.answers) for group in groups)
        default = next(filter(None, defaults), None)
        return found._replace(default=default) if default else None
    return found or (None if groups else _with_an_or(line))


def _half_bracketed(line: str) -> Options | None:
    """Return the answers of a line such as ``Sure? y/[n]: ``."""
    found = _HALF_BRACKETED.search(line)
    if found is None:
        return None
    answers = tuple(answer for answer in found.groups() if answer)
    default = str(found[1] or found[4])
    return Options(answers, default) if means_yes_and_no(set(answers)) else None


def _with_numbers(line: str, groups: list[Group]) -> Options | None:
    """Return the numbers of a line such as ``Enter 0 = off, 1 = on: ``."""
    numbers = [found[1] for found in _NUMBERED.finditer(line)]
    if len(numbers) < 2 or "".join(sorted(numbers)) not in "0123456789":
        return None
    is_asked = groups or CHOOSING.search(line) or _IS_DEMAND.search(line)
    asks = bool(_IS_ASKING.search(line[-2:])) and min(numbers) in "01"
    return Options(tuple(numbers)) if asks and is_asked else None


def _with_an_or(line: str) -> Options | None:
    """Return the answers of a line such as ``Please answer yes or no: ``."""
    found = _OR_AT_END.search(line)
    if found is None:
        return None
    is_longer = line[: found.start()].rstrip().endswith((",", ";", "/"))
    if is_longer and not line.rstrip().endswith("?"):
        return None
    answers = (str(found[1]), str(found[2]))
    is_word = min(map(len, answers)) > 1 or "y" in {answer.casefold() for answer in answers}
    return Options(answers) if is_word and means_yes_and_no(set(answers)) else None


def _by_their_letters(line: str, groups: list[Group]) -> Options | None:
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


def _is_all_answers(line: str, answers: tuple[str, ...]) -> bool:
    """Return whether ``(r)eject, accept (o)nce`` or the like is the line, or follows its question.

    Letters in the order of the alphabet number the parts of a text.
    """
    is_numbered = "".join(answers).casefold() in "abcdefghijklmnopqrstuvwxyz"
    first = _ITS_LETTER.search(line)
    before = line[: first.start()].rstrip() if first else line
    begins = not before or before.endswith(("?", "？", ":"))
    return begins and len(answers) >= _FEW and not is_numbered


def _default_letter(line: str, groups: list[Group], answers: tuple[str, ...]) -> str | None:
    """Return the letter that the last group calls the default, or begins as a word.

    Else it is the one capital, unless that may begin a sentence.
    """
    last_group = groups[-1].text if groups else ""
    if (named := default_in(last_group)) is not None:
        return named if named in answers else None
    brackets = [found["letter"] for found in _ITS_LETTER.finditer(line)]
    if last_group in answers and brackets.count(last_group) > 1:
        return last_group
    if len(last_group) > 1 and last_group.isalpha():
        meant = [answer for answer in answers if answer.casefold() == last_group[0].casefold()]
        return meant[0] if len(meant) == 1 else None
    return _letter_that_stands_out(line, groups, answers)


def _letter_that_stands_out(line: str, groups: list[Group], answers: tuple[str, ...]) -> str | None:
    """Return the yes or the no in square brackets beside round ones, or the one capital."""
    square = [str(found["letter"]) for found in _ITS_LETTER.finditer(line) if "[" in found[0]]
    has_round = "(" in line or "（" in line
    if len(square) == 1 and has_round and means_yes_and_no(set(answers[:2])):
        return square[0] if square[0] in answers[:2] else None
    is_listed = any(len(_ITS_LETTER.findall(group.text)) > 1 for group in groups)
    if is_listed or means_yes_and_no(set(answers)):
        return _in_capitals(answers)
    if len(_STROKE_BETWEEN.findall(line)) >= len(answers) - 1:
        return _in_capitals(answers, few=0 if answers[0].isupper() else _few(answers))
    return None


def _is_typed(letter: str) -> bool:
    # Letters of scripts without capitals stand for a variant of the word, not for an answer.
    return letter == "?" or letter.lower() != letter.upper()


def _in_group(text: str) -> Options | None:
    named = DEFAULT.search(text)
    parts = _parts(text[: named.start()] if named else text)
    are_all = not any(part.startswith(("...", "…")) for part in parts)
    kept = [part for part in parts if not part.startswith(("...", "…"))]
    answers, marked = _unmarked([_without_quotes(part) for part in kept])
    if len(answers) < 2 or len(set(answers)) != len(answers):
        return None
    if not all(_OPTION.match(answer) for answer in answers):
        return None
    few = 0 if _WITH_AN_OR.match(text) else _few(answers)
    few = len(answers) if _LETTERS.match(text) else few
    default = _named(named[1], answers) if named else marked or _in_capitals(answers, few=few)
    return Options(answers, default, are_all)


def _parts(text: str) -> list[str]:
    if _LETTERS.match(text):
        return list(text)
    if both := _TWO_LANGUAGES.match(text):
        text = both[1]
    for separator in _SEPARATORS:
        if separator in text:
            parts = [part.strip() for part in text.split(separator)]
            last = _LAST_TWO.match(parts[-1])
            parts[-1:] = [part for part in last.groups() if part] if last else parts[-1:]
            return _letters_of(parts) if separator != "," else _without_meanings(parts)
    if spaced := _SPACED.match(text):
        return _without_meanings([spaced[1], spaced[2]])
    return _around_a_word(text)


def _around_a_word(text: str) -> list[str]:
    """Return ``y`` and ``n`` of a text such as ``y or [n]``, or ``enter y or n``."""
    if told := _WITH_AN_OR.match(text):
        return [told[1], told[2]]
    word = _WITH_A_WORD.match(text)
    if word is None:
        return [text]
    pair = [_without_quotes(word[2]), _without_quotes(word[3])]
    bare = {part.strip("[]") for part in pair}
    # Single letters after other words may be words themselves.
    is_clear = word["demand"] is None or min(map(len, bare)) > 1 or bare <= set("yYnN")
    return pair if is_clear and means_yes_and_no(bare) else [text]


def _without_quotes(part: str) -> str:
    found = _QUOTED.match(part) or _ITS_REST.match(part)
    return str(found[1]) if found else part


def _without_meanings(parts: list[str]) -> list[str]:
    """Return ``y`` and ``n`` of parts such as ``y=ja`` and ``n=nej``."""
    found = [_MEANING.match(part) for part in parts]
    if not all(found):
        return parts
    answers = [min(meaning[1], meaning[2], key=len) for meaning in found if meaning]
    are_letters = set(map(len, answers)) == {1}
    return answers if means_yes_and_no(set(answers[: None if not are_letters else 2])) else parts


def _between_strokes(text: str) -> list[str]:
    return [part.strip() for part in re.split(r"[/|]", text)]


def _has_meanings(parts: list[str]) -> bool:
    """Return whether parts are letters with their meanings, or such and words without."""
    has_some = any("=" in part for part in parts)
    return all(map(_OWN_MEANING.match, parts)) and (
        has_some if len(parts) > 2 else all("=" in part for part in parts)
    )


def _letters_of(parts: list[str]) -> list[str]:
    """Return ``a``, ``y`` and ``N`` of parts such as ``a=all``, ``y`` and ``N``."""
    return (
        [part.split("=")[0].strip() for part in parts]
        if _has_meanings(parts)
        else _without_meanings(parts)
    )


def _unmarked(parts: list[str]) -> tuple[tuple[str, ...], str | None]:
    """Return the answers, and the one that was in brackets of its own."""
    plain = [part for part in parts if part[:1] != "["]
    marked = [part[1:-1] for part in parts if part[:1] == "[" and part[-1:] == "]"]
    if len(marked) != 1 or len(plain) + 1 != len(parts):
        return tuple(parts), None
    if means_yes_and_no(set(plain)):
        # What is marked stands for something else, such as a fingerprint.
        return tuple(plain), None
    return tuple(marked[0] if part[:1] == "[" else part for part in parts), marked[0]


def _in_capitals(answers: tuple[str, ...], *, few: int = _FEW) -> str | None:
    """Return the one answer in capitals among answers in small letters."""
    cased = [answer for answer in answers if answer[0].lower() != answer[0].upper()]
    large = [answer for answer in cased if answer[0].isupper()]
    if len(large) != 1 or len(cased) < 2 or large[0].lower() in answers:
        return None
    # Among many letters a capital can be an answer of its own, unless it is the yes or the no.
    if len(answers) == 2 < len("".join(answers)) and not means_yes_and_no(set(answers)):
        # Capitals in (KB/s) are those of a unit.
        return None
    first = cased[:2] if means_yes_and_no(set(cased[:2])) else ["Y", "N"]
    is_one = {large[0].casefold()} < {answer.casefold() for answer in first}
    return large[0] if is_one or len(answers) <= few else None


def _few(answers: tuple[str, ...]) -> int:
    """Return among how many answers a capital tells the default, though it is no yes and no no."""
    return 0 if {"y", "n"} <= set(answers) or {"yes", "no"} <= set(answers) else _FEW


def _named(text: str, answers: tuple[str, ...]) -> str | None:
    """Return the answer that ends a text such as ``default=N``, in any language.

    A word for yes or no stands for the letter that begins it, and such a letter for its word.
    """
    last = re.split(r"[\s=:]", text)[-1].strip("\"'`").casefold()
    exact = [answer for answer in answers if answer.casefold() == last]
    if exact or not is_a_yes_or_a_no(last):
        return exact[0] if exact else None
    are_letters = set(map(len, answers)) == {1}
    meant = [
        answer
        for answer in answers
        if (last.startswith(answer.casefold()) if are_letters else is_short_for(last, answer))
    ]
    return meant[0] if len(meant) == 1 else None


def _is_certain(found: Options, *, asks: bool, is_told: bool) -> bool:
    if found.are_yes_and_no:
        return not _is_not_available(found.answers)
    if is_told:
        return asks
    if len(found.answers) == 2 and all(answer.isdecimal() for answer in found.answers):
        return False
    if are_opposites(found.answers):
        return asks
    # Two letters or words are often a unit or a form, as in (m/s) and (name/ip).
    return found.default is not None or (asks and len(found.answers) > 2)


def _is_not_available(answers: tuple[str, ...]) -> bool:
    # "n/a" has the letters of a yes and a no in Czech.
    is_letter = len(answers[1]) == 1 and answers[1].casefold() not in {"y", "j"}
    return answers[0].casefold() in {"n", "н"} and is_letter


def _with_strokes(line: str) -> Options | None:
    """Return the answers of a line such as ``Ignore/Cancel?``."""
    ending = _STROKES.search(line)
    if ending is None:
        return None
    answers = tuple(part.strip().rstrip(":?>") for part in ending[1].split("/"))
    if len(set(answers)) != len(answers) or not all(map(_OPTION.match, answers)):
        return None
    if means_yes_and_no(set(answers)):
        is_pair = not _is_not_available(answers)
        return Options(answers, _in_capitals(answers)) if is_pair else None
    follows_question = line[: ending.start()].rstrip().endswith("?")
    are_words = all(answer.isalpha() for answer in answers) and (
        follows_question or all(answer[0].isupper() for answer in answers)
    )
    are_letters = all(len(answer) == 1 and answer.isalpha() for answer in answers)
    return (
        Options(answers) if (are_words and "?" in line) or (are_letters and ">" in line) else None
    )
