"""Questions that do not spell their answers out: yes or no by their form, numbers, paths, texts."""

import re
from typing import Final

from projects.sessions.asked.words import (
    CLOSED,
    COUNTS,
    FREE,
    HOW_MANY,
    NO_VALUES,
    PATHS,
    PLACES,
)

_NAME_OF_PROGRAM: Final = r"(?:[\w./+-]{1,40}: ){0,2}"
_ASKS_YES_OR_NO: Final = re.compile(
    rf"^\W*{_NAME_OF_PROGRAM}(?:"
    r"(?:do|does|did|are|is|was|would|will|shall|should|can|could|may|has|have) \S"
    r"|(?:really |ok(?:ay)? to )?(?:remove|overwrite|replace|delete|continue|proceed|install|create"
    r"|upgrade|update|enable|disable|restart|reboot|save|quit|abort|retry|accept|destroy|erase)\b"
    r"|(?:möchten|wollen|sollen|sind|soll|haben) (?:sie|die|der|das)\b"
    r"|(?:voulez|souhaitez)-vous\b|êtes-vous sûr|faut-il\b|est-ce que\b"
    r"|¿?(?:desea|quiere|está seguro)\b|deseja\b|tem certeza"
    r"|você quer\b|vuoi\b|sei sicuro|wilt u\b|weet u zeker|czy \w|вы уверены|вы хотите|хотите"
    r"|ви впевнені|бажаєте|vill du\b|är du säker|vil du\b|er du sikker|chcete\b"
    r"|opravdu\b|haluatko\b"
    r"|هل |האם |क्या आप )",
    re.IGNORECASE,
)
_ENDS_YES_OR_NO: Final = re.compile(
    r"(?:吗|嗎|ますか|ですか|(?:할|될|하시겠습니)까요?|\bm[ıiuü](?:sunuz|sınız)?)\s*[?？]\s*\Z",
    re.IGNORECASE,
)
_ABOUT_A_FILE: Final = re.compile(
    r"^[a-z][\w.+-]{0,30}\s?[:：] ?[^\n]*['\"‘’“”„«»]\S[^\n]*[?？;؟]\s*\Z"
)
_LIST_OF_ANSWERS: Final = re.compile(r"\W*\w+(?:, ?\w+)+\W*\Z")
_OPEN_QUESTION: Final = re.compile(
    r"\b(?:or|what|which|who|where|when|why|how|oder|ou|yoksa|oppure|eller|или|або|nebo|lub|wie|was|wer|welche\w*|quel\w*|qué|cuál)\b"
    r"|それとも|还是|還是|아니면|何|どう|どれ|どの|誰|いつ|どこ|什么|哪|多少|무엇|어떻게|어디|언제|몇",
    re.IGNORECASE,
)
# Greek asks with a semicolon.
_IS_QUESTION: Final = re.compile(r"(?:[?？؟]|[\u0370-\u03ff][^\n]*;)\s*\Z")
_IS_OPEN: Final = re.compile(r"[?？؟:：]\s*\Z")
_RANGE: Final = re.compile(
    r"(?:\A|[ \[(])(?P<low>\d{1,12})\s?(?:-|–|\.\.\.?|to|and|und|bis|et|à|y|e|en|и|до)\s?"
    r"(?P<top>\d{1,12})(?: \w{1,8})?(?=\Z|[\])]|[,;] ?default|\s*[:?>])",
    re.IGNORECASE,
)
_PLACE: Final = re.compile(r"(?:/|~/|\.{1,2}/|[A-Za-z]:\\)[^\n]{0,200}\Z")
_DEMAND: Final = re.compile(
    r"[?:？：؟]\s*\Z|\b(?:enter|type|specify|select|choose|which|what)\b", re.IGNORECASE
)
_FRACTION: Final = re.compile(r"\d{1,9}/\d{1,9}\Z")
_SEVERAL: Final = re.compile(r"\w[/|,]\w")
_MANY: Final = re.compile(r" or |\+/-")


def asks_yes_or_no(question: str) -> bool:
    """Return whether the form of the question allows no other answers than yes and no."""
    if _OPEN_QUESTION.search(question) or _LIST_OF_ANSWERS.match(question):
        return False
    if not _IS_QUESTION.search(question):
        return False
    found = _ASKS_YES_OR_NO.search(question) or _ENDS_YES_OR_NO.search(question)
    return bool(found or _ABOUT_A_FILE.search(question))


def range_in(text: str) -> range | None:
    """Return the numbers of the range that the text ends with, such as ``1-5``."""
    found = _RANGE.search(text)
    numbers = range(int(found["low"]), int(found["top"]) + 1) if found else range(0)
    return numbers if len(numbers) > 1 else None


def asks_for_number(question: str, default: str | None) -> bool:
    """Return whether the question is about a count, and its default, if any, is a number."""
    if default is None:
        return bool(HOW_MANY.search(question) and _IS_OPEN.search(question))
    return bool(COUNTS.search(question) or HOW_MANY.search(question)) and default.isdecimal()


def allows_other_than_numbers(question: str) -> bool:
    """Return whether the question names several ways to answer it."""
    return bool(_MANY.search(question))


def asks_for_path(question: str, default: str | None) -> bool:
    """Return whether the default is a path, or the question ends in a word for one."""
    if default:
        return bool(_PLACE.match(default))
    if PATHS.match(question):
        return True
    words = [found.end() for found in PLACES.finditer(question)]
    return (
        bool(words) and not question[words[-1] :].strip(" :") and not _IS_QUESTION.search(question)
    )


def asks_for_free_text(question: str, *, has_default: bool) -> bool:
    """Return whether the question is for something that a person makes up, such as a title."""
    words = question.strip(" \t:?>›").split()
    return (
        (has_default or len(words) > 1)
        and bool(FREE.search(question))
        and not CLOSED.search(question)
    )


def is_a_demand(before: str, after: str) -> bool:
    """Return whether the text around a bracketed value asks for one, and does not report it."""
    return bool(_DEMAND.search(before) or after.strip()) and before.rfind("[") <= 0


def is_value(text: str) -> bool:
    """Return whether the text can be a default: one word or path, and no word for nothing.

    Several words with strokes, bars or commas between them may be answers to choose from.
    """
    is_word = 0 < len(text) <= 200 and " " not in text and not _FRACTION.match(text)
    is_word = is_word and (not _SEVERAL.search(text) or bool(_PLACE.match(text)) or "://" in text)
    is_word = is_word and any(map(str.isalnum, text))
    return is_word and text.casefold() not in NO_VALUES
