"""The answers that a prompt spells out: in brackets, with strokes between, or by their letters."""

import re
from collections.abc import Iterator
from typing import Final, NamedTuple

from projects.sessions.asked.words import DEFAULTS, NO_VALUES, means_yes_and_no

_OPENERS: Final = "[(<{（【"
_CLOSERS: Final = "])>}）】"
_ENDING: Final = r"[\s:?.!;>：？。؟]*"
_IS_ENDING: Final = re.compile(_ENDING + r"\Z")
_SEPARATORS: Final = (",", "/", "|")
_WITH_A_WORD: Final = re.compile(r"(\S{1,12}) \S{1,8} (\S{1,12})\Z")
_TWO_LANGUAGES: Final = re.compile(r"(\S{1,12}/\S{1,12}) \S{1,8}(?: \S{1,8})? \S{1,12}/\S{1,12}\Z")
_MEANING: Final = re.compile(r"([^\s=-]{1,8})\s?(?:=|-|–|—|pro|for)\s?([^\s=-]{1,12})\Z")
_OPTION: Final = re.compile(r"[^\s\[\](){}<>\"'`„“”«»=;\\]{1,24}\Z")
_IS_ASKING: Final = re.compile(r"[:?>：？؟]")
_DEFAULT: Final = re.compile(
    rf"(?:^|[,;，；、 ])\s*(?:the )?(?:{DEFAULTS})(?:s to| is)?\s*[:=：＝ ]\s*"
    r"[\"'`]?([^\s\"'`,;]{1,200})[\"'`]?\s*\Z",
    re.IGNORECASE,
)
_ITS_LETTER: Final = re.compile(
    r"(?P<before>\w?)[\[(（](?P<letter>[^\W\d_]|\?)[\])）](?P<after>[ -]?\w?)"
)
_STROKES: Final = re.compile(
    rf"(?:^|(?<=\s))([^\s/]{{1,24}}(?: ?/ ?[^\s/]{{1,24}}){{1,12}}?){_ENDING}\Z"
)
_LETTERS: Final = re.compile(
    r"(?:(?:yn|Yn|yN)[a-z]{0,10}[a-z?H]|(?i:yn|ny|jn|nj)|(?=[a-z]*y)(?=[a-z]*n)[a-z]{3,12}\?)\Z"
)
"""Letters that stand side by side: a yes, a no, and more of them."""
_FEW: Final = 3


class Group(NamedTuple):
    """A pair of brackets in a line, with what it holds; ``start`` and ``end`` are around it."""

    start: int
    end: int
    text: str
    opener: str


class Options(NamedTuple):
    """The answers as a prompt spells them; ``are_all`` is False if it leaves some out."""

    answers: tuple[str, ...]
    default: str | None = None
    are_all: bool = True

    @property
    def are_yes_and_no(self) -> bool:
        """True if they mean yes and no, whether or not a question mark shows help."""
        return means_yes_and_no(set(self.answers) - {"?"})


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
            named = (_named(rest.text, found.answers) for rest in groups[at + 1 :])
            found = found._replace(default=next(filter(None, named), None))
        return found if _is_certain(found, asks=asks) else None
    return None if groups else _with_strokes(line)


def default_in(text: str) -> str | None:
    """Return the value that a bracketed part calls the default."""
    named = _DEFAULT.search(text)
    return named[1] if named and named[1].casefold() not in NO_VALUES else None


def _by_their_letters(line: str, groups: list[Group]) -> Options | None:
    """Return the answers of a line such as ``(R)eject or [q]uit``."""
    letters = [
        found["letter"]
        for found in _ITS_LETTER.finditer(line)
        if (found["before"] or found["after"].strip(" -")) and _is_typed(found["letter"])
    ]
    if len(letters) < 2 or len(set(letters)) != len(letters):
        return None
    answers = tuple(letters)
    return Options(answers, _default_letter(answers, groups[-1].text if groups else ""))


def _is_all_answers(line: str, answers: tuple[str, ...]) -> bool:
    """Return whether a line such as ``(r)eject, accept (o)nce`` has nothing but its answers.

    Letters in the order of the alphabet number the parts of a text.
    """
    is_numbered = "".join(answers).casefold() in "abcdefghijklmnopqrstuvwxyz"
    begins = _ITS_LETTER.match(line.lstrip()) is not None
    return begins and len(answers) >= _FEW and not is_numbered


def _default_letter(answers: tuple[str, ...], last_group: str) -> str | None:
    """Return the letter that the last group calls the default, or begins as a word."""
    if (named := default_in(last_group)) is not None:
        return named if named in answers else None
    if len(last_group) > 1 and last_group.isalpha():
        return last_group[0] if last_group[0] in answers else None
    is_pair = means_yes_and_no(set(answers))
    return _in_capitals(answers) if is_pair or (len(answers) > _FEW and last_group) else None


def _is_typed(letter: str) -> bool:
    # Letters of scripts without capitals stand for a variant of the word, not for an answer.
    return letter == "?" or letter.lower() != letter.upper()


def _in_group(text: str) -> Options | None:
    named = _DEFAULT.search(text)
    parts = _parts(text[: named.start()] if named else text)
    are_all = not any(part.startswith(("...", "…")) for part in parts)
    answers, marked = _unmarked([part for part in parts if not part.startswith(("...", "…"))])
    if len(answers) < 2 or len(set(answers)) != len(answers):
        return None
    if not all(_OPTION.match(answer) for answer in answers):
        return None
    default = _named(named[1], answers) if named else marked or _in_capitals(answers)
    return Options(answers, default, are_all)


def _parts(text: str) -> list[str]:
    if _LETTERS.match(text):
        return list(text)
    if both := _TWO_LANGUAGES.match(text):
        text = both[1]
    for separator in _SEPARATORS:
        if separator in text:
            return _without_meanings([part.strip() for part in text.split(separator)])
    word = _WITH_A_WORD.match(text)
    is_pair = word and means_yes_and_no({word[1].strip("[]"), word[2].strip("[]")})
    return [word[1], word[2]] if word and is_pair else [text]


def _without_meanings(parts: list[str]) -> list[str]:
    """Return ``y`` and ``n`` of parts such as ``y=ja`` and ``n=nej``."""
    found = [_MEANING.match(part) for part in parts]
    if not all(found):
        return parts
    answers = [min(meaning[1], meaning[2], key=len) for meaning in found if meaning]
    return answers if means_yes_and_no(set(answers)) else parts


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


def _in_capitals(answers: tuple[str, ...]) -> str | None:
    """Return the one answer in capitals among answers in small letters."""
    cased = [answer for answer in answers if answer[0].lower() != answer[0].upper()]
    large = [answer for answer in cased if answer[0].isupper()]
    if len(large) != 1 or len(cased) < 2 or large[0].lower() in answers:
        return None
    # Among many letters a capital can be an answer of its own, unless it is the yes or the no.
    first = cased[:2] if means_yes_and_no(set(cased[:2])) else ["Y", "N"]
    is_one = {large[0].casefold()} < {answer.casefold() for answer in first}
    return large[0] if is_one or len(answers) <= _FEW else None


def _named(text: str, answers: tuple[str, ...]) -> str | None:
    """Return the answer that ends a text such as ``default=N``, in any language."""
    last = re.split(r"[\s=:]", text)[-1].strip("\"'`")
    return next((answer for answer in answers if answer.casefold() == last.casefold()), None)


def _is_certain(found: Options, *, asks: bool) -> bool:
    if found.are_yes_and_no:
        return not _is_not_available(found.answers)
    if len(found.answers) == 2 and all(answer.isdecimal() for answer in found.answers):
        return False
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
