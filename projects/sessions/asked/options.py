"""The answers that a prompt spells out: in brackets, with strokes between, or by their letters."""

import re
from typing import Final

from projects.sessions.asked.answers import (
    OPTION,
    Options,
    few_of,
    in_capitals,
    is_not_available,
    named_in,
)
from projects.sessions.asked.brackets import DEFAULT, ENDING, Group, default_in
from projects.sessions.asked.letters import by_their_letters, is_all_answers
from projects.sessions.asked.words import (
    CHOOSING,
    OR,
    are_opposites,
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
_IS_ASKING: Final = re.compile(r"[:?>：？؟]")
_STROKES: Final = re.compile(
    rf"(?:^|(?<=\s))([^\s/]{{1,24}}(?: ?/ ?[^\s/]{{1,24}}){{1,12}}?){ENDING}\Z"
)
_LETTERS: Final = re.compile(
    r"\+?(?:(?:yn|Yn|yN|nY)[a-z]{0,10}[A-Z]?[a-z]{0,10}\??|(?i:yn|ny|jn|nj)"
    r"|(?=[a-z]*y)(?=[a-z]*n)[a-z]{3,12}\?|ny[aedhq]{1,5}|12[3-9]{0,7}[a-z]{0,3}\?[a-z]{0,3})\Z"
)
"""Letters that stand side by side: a yes, a no, and more; or numbers and a question mark."""
_DETAILS: Final = re.compile(
    r"\s*(?:\w{1,20} ){1,3}\[((?i:yn|ny))\]((?:\s{1,4}\w{2,20} \[\w\]){1,4})\s*\Z"
)
_DETAIL: Final = re.compile(r"(\w)\w{1,19} \[(\w)\]")
_LAST_APART: Final = re.compile(
    r"[.?:]\s{1,2}((?:[\w.-]{1,24}/){2,12})\(([\w.-]{1,24})\)\s?[:?]\s*\Z"
)
"""Words with strokes, of which the last stands in brackets."""
_IS_OR: Final = re.compile(rf"(?:{OR})\Z", re.IGNORECASE)
_NAME: Final = re.compile(r"[\w.+-]{1,24}\Z")
_PROSE: Final = re.compile(
    r"(?:a|an|the|to|in|of|for|is|as|at|by|on|not|if|with|and|from|only|e\.g\.|i\.e\.)\Z",
    re.IGNORECASE,
)
_AMOUNT: Final = re.compile(
    r"(?:more|less|fewer|higher|lower|above|below|later|up|all)\Z", re.IGNORECASE
)
_MOST_WORDS: Final = 20
_QUOTED_PART: Final = re.compile(r"(?:^|[,/|\s])(['\"`])[^\s'\"`]{1,24}\1(?=[,/|\s]|\Z)")
_QUOTED_WORD: Final = re.compile(r"['\"`‘“]([^\s'\"`‘’“”]{1,24})['\"`’”]")
_QUOTED_LIST: Final = re.compile(
    r"(?:'[^\s',]{1,24}'(?:, |\Z)){2,20}\Z|(?:\"[^\s\",]{1,24}\"(?:, |\Z)){2,20}\Z"
)
_FOR_WHAT: Final = re.compile(r"(?<=['\"`]) (?:for|to) \w{1,20}(?: \w{1,20})?(?=,|\Z| or )")
"""The purpose of an answer, after its quotes."""
_TO_CHOOSE: Final = re.compile(
    r"\A(?:(?:choose|enter|type|pick|select|use)(?: from)? (?=['\"`])"
    r"|(?:one of|options|choices)(?:: ?| ))",
    re.IGNORECASE,
)
_INITIAL: Final = re.compile(r"(\w) ?[=:] ?(?i:\1)\w{1,20}")
_INITIALS: Final = re.compile(
    rf"{_INITIAL.pattern}(?:(?:, | or |, or )(\w) ?[=:] ?(?i:\2)\w{{1,20}}){{1,8}}\Z"
)
"""Letters, each with the word that it begins."""
_ONE_THING: Final = re.compile(
    r"(?:~|\.{1,2}|\$\{?\w+\}?|%\w+%)/\S+\Z"
    r"|\d{4}/\d\d?/\d\d?\Z|[\w-]+\.[a-z]{2,6}(?::\d+)?(?:/[^./\s]+)+\Z"
    r"|(?:[^./\s|]+/){2,}[^./\s|]+\.[A-Za-z]\w{0,4}\Z"
)
"""A path, a date, or a name with its server: strokes are a part of it, and it is a default."""
_IS_DEMAND: Final = re.compile(r"\b(?:enter|type|press|set|use)\b", re.IGNORECASE)


def options_in(line: str, groups: list[Group]) -> Options | None:
    """Return the answers that the line spells out, if it does."""
    asks = bool(_IS_ASKING.search(line[groups[0].start - 2 if groups else -2 :]))
    if (lettered := by_their_letters(line, groups)) is not None and (
        asks or lettered.default is not None or is_all_answers(line, lettered.answers)
    ):
        return lettered
    if detailed := _with_details(line):
        return detailed
    for at, group in reversed(list(enumerate(groups))):
        if (
            found := _in_group(group.text) or _bare_words(group.text, groups[at + 1 :])
        ) is not None:
            return _if_certain(found, line, groups, at, asks=asks)
    return _without_group(line, groups)


def _if_certain(
    found: Options, line: str, groups: list[Group], at: int, *, asks: bool
) -> Options | None:
    """Return the answers of one of the groups, with the default that others name."""
    group, beside = groups[at], groups[at + 1 :]
    if found.default is None:
        told = [rest.text for rest in groups[:at] if default_in(rest.text) is not None]
        named = (named_in(text, found.answers) for text in [rest.text for rest in beside] + told)
        found = found._replace(default=next(filter(None, named), None))
    if _is_contradicted(found, group.text, beside):
        return None
    are_quoted = _are_quoted_before(found, line[: group.start])
    is_told = _is_told(group.text) or are_quoted or _is_quoted_list(group)
    return found if _is_certain(found, asks=asks or are_quoted, is_told=is_told) else None


def _without_group(line: str, groups: list[Group]) -> Options | None:
    """Return the answers of a line that has none inside one pair of brackets."""
    found = (
        _with_numbers(line, groups) or _half_bracketed(line) or _with_the_last_apart(line, groups)
    )
    if found is not None:
        return found
    found = _with_strokes(line[: groups[0].start] if groups else line)
    if groups and found is not None:
        # Something else in the brackets may change what the words before them mean.
        defaults = (named_in(group.text, found.answers) for group in groups)
        default = next(filter(None, defaults), None)
        return found._replace(default=default) if default else None
    return found or (None if groups else _with_an_or(line))


def _with_details(line: str) -> Options | None:
    """Return the answers of a line such as ``Go on [yN]  More [m]``."""
    found = _DETAILS.match(line)
    if found is None:
        return None
    further = _DETAIL.findall(found[2])
    are_own = all(word.casefold() == letter.casefold() for word, letter in further)
    answers = (*found[1], *(letter for _, letter in further))
    is_clear = are_own and len(set(answers)) == len(answers)
    return Options(answers, in_capitals(tuple(found[1]))) if is_clear else None


def _with_the_last_apart(line: str, groups: list[Group]) -> Options | None:
    """Return the answers of a line such as ``red/green/(none): ``, whose last Enter gives."""
    found = _LAST_APART.search(line) if groups else None
    if found is None:
        return None
    answers = (*str(found[1]).strip("/").split("/"), str(found[2]))
    is_clear = len(answers) > 2 and len(set(answers)) == len(answers)
    return Options(answers, answers[-1]) if is_clear else None


def _bare_words(text: str, beside: list[Group]) -> Options | None:
    """Return the answers of a text such as ``sh csh or 'none'``.

    Words without signs between them may be prose, unless the brackets beside them name one of
    them, or they have digits as the names of devices do.
    """
    words = text.split()
    if not 2 < len(words) <= _MOST_WORDS:
        return None
    has_or = bool(_IS_OR.match(words[-2]))
    names = tuple(map(_without_quotes, [*words[:-2], words[-1]] if has_or else words))
    if len(set(names)) != len(names) or not all(map(_NAME.match, names)):
        return None
    if any(map(_IS_OR.match, names)):
        return None
    if any(map(_PROSE.match, names[:-1] if has_or else names)) or _AMOUNT.match(names[-1]):
        return None
    default = next((group.text for group in beside if group.text in names), None)
    are_devices = has_or and all(any(map(str.isdecimal, name)) for name in names[:-1])
    return Options(names, default) if default or are_devices else None


def _is_contradicted(found: Options, text: str, beside: list[Group]) -> bool:
    """Return whether the brackets beside name another answer, or only some parts are quoted.

    Parts without quotes beside others with them describe what is to be given.
    """
    if found.default is not None or found.are_yes_and_no:
        return False
    quoted = len(_QUOTED_PART.findall(text))
    others = [group for group in beside if group.opener == "[" and len(group.text) > 1]
    return bool(others) or ("," in text and 0 < quoted < len(found.answers))


def _is_told(text: str) -> bool:
    """Return whether the form of a bracketed part shows that it holds answers."""
    is_pair = bool(_WITH_AN_OR.match(text) or _INITIALS.match(text))
    return is_pair or _has_meanings(_between_strokes(text))


def _is_quoted_list(group: Group) -> bool:
    return group.opener == "[" and bool(_QUOTED_LIST.match(group.text))


def _are_quoted_before(found: Options, before: str) -> bool:
    """Return whether the line quotes two of the answers before it lists them."""
    quoted = {str(word[1]) for word in _QUOTED_WORD.finditer(before)}
    return len(quoted & set(found.answers)) > 1


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


def _in_group(text: str) -> Options | None:
    if _ONE_THING.match(text):
        return None
    text = _FOR_WHAT.sub("", _TO_CHOOSE.sub("", text))
    named = DEFAULT.search(text)
    parts = _parts(text[: named.start()] if named else text)
    are_all = not any(part.startswith(("...", "…")) for part in parts)
    kept = [part for part in parts if not part.startswith(("...", "…"))]
    answers, marked = _unmarked([_without_quotes(part) for part in kept])
    if len(answers) < 2 or len(set(answers)) != len(answers):
        return None
    if not all(OPTION.match(answer) for answer in answers):
        return None
    few = 0 if _WITH_AN_OR.match(text) else few_of(answers)
    few = len(answers) if _LETTERS.match(text) else few
    default = named_in(named[1], answers) if named else marked or in_capitals(answers, few=few)
    return Options(answers, default, are_all)


def _parts(text: str) -> list[str]:
    if _LETTERS.match(text):
        return list(text)
    if _INITIALS.match(text):
        return [str(found[1]) for found in _INITIAL.finditer(text)]
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


def _is_certain(found: Options, *, asks: bool, is_told: bool) -> bool:
    if found.are_yes_and_no:
        return not is_not_available(found.answers)
    if is_told:
        return asks
    if len(found.answers) == 2 and all(answer.isdecimal() for answer in found.answers):
        return False
    if are_opposites(found.answers):
        return asks
    # Two letters or words are often a unit or a form, as in (m/s) and (name/ip).
    return found.default is not None or (asks and len(found.answers) > 2)


def _with_strokes(line: str) -> Options | None:
    """Return the answers of a line such as ``Ignore/Cancel?``."""
    ending = _STROKES.search(line)
    if ending is None:
        return None
    answers = tuple(part.strip().rstrip(":?>") for part in ending[1].split("/"))
    if len(set(answers)) != len(answers) or not all(map(OPTION.match, answers)):
        return None
    if means_yes_and_no(set(answers)):
        is_pair = not is_not_available(answers)
        return Options(answers, in_capitals(answers)) if is_pair else None
    follows_question = line[: ending.start()].rstrip().endswith("?")
    are_words = all(answer.isalpha() for answer in answers) and (
        follows_question or all(answer[0].isupper() for answer in answers)
    )
    are_letters = all(len(answer) == 1 and answer.isalpha() for answer in answers)
    return (
        Options(answers) if (are_words and "?" in line) or (are_letters and ">" in line) else None
    )
