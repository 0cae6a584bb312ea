"""Questions that do not spell their answers out: yes or no by their form, numbers, paths, texts."""

import re
from typing import Final

from projects.sessions.asked.words import (
    CLOSED,
    COUNTS,
    DEFAULTS,
    FILE_NAMES,
    FREE,
    FREE_ALONE,
    HOW_MANY,
    NO_VALUES,
    OR,
    PATHS,
    PLACES,
    UNITS,
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
    r"(?:\banyway|吗|嗎|ますか|ですか|(?:할|될|하시겠습니)까요?|\bm[ıiuü](?:sunuz|sınız)?)\s*[?？]\s*\Z"
    # Kazakh and its neighbours end such questions with a particle.
    r"|[\u0400-\u04ff] (?:ма|ме|ба|бе|па|пе)\s?\?\s*\Z",
    re.IGNORECASE,
)
_RHETORICAL: Final = re.compile(r"^\t|^\W*did you (?:forget|mean)\b", re.IGNORECASE)
"""Questions that end a report, and that nobody waits for an answer to."""
_ABOUT_A_FILE: Final = re.compile(
    r"^[a-z][\w.+-]{0,30}\s?[:：] ?[^\n]*['\"‘’“”„«»]\S[^\n]*[?？;؟]\s*\Z"
)
_ABOUT_A_COMMAND: Final = re.compile(
    r"< [a-z][^<>?]{1,400} > \? *\Z|[a-z][\w.+-]{0,30} [^?]{0,400}[./-][^?]{0,100}\?\.\.\.\s*\Z"
)
"""A command that is shown before it is run, as ``find`` and ``xargs`` show it."""
_SENTENCE_END: Final = re.compile(r"[.!]\s{1,4}(?=[A-Z])")
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
    r"(?:\A|[ \[(])(?P<low>\d{1,12})\s?(?:-|–|~|\.\.\.?|to|through|and|und|bis|et|à|y|e|en|и"
    r"|до|a|ate|até|hasta|až|do|til|till|tot|och|og|ja|līdz|iki|kuni|és|și|și|ile|ve|và|đến|sampai"
    r"|から|到|至|부터|에서|〜|～|إلى|עד)\s?"
    r"(?P<top>\d{1,12})(?:[ \u3040-\u30ff\u4e00-\u9fff\uac00-\ud7af]{1,30}| \w{1,8})?"
    rf"(?=\Z|[\])]|[,;，、；]\s?(?:\d{{1,12}} |\w{{1,12}} )?(?:{DEFAULTS})|\s*[:?>：？])",
    re.IGNORECASE,
)
_ENDS_IN_A_PLACE: Final = re.compile(
    r"\b(?:file ?name|(?:output|input|destination|target|source|log|key|config\w{0,8}) file"
    r"|directory|folder|path)[\s:?]*\Z",
    re.IGNORECASE,
)
_PLACE: Final = re.compile(r"(?:/|~/|\.{1,2}/|[A-Za-z]:\\)[^\n]{0,200}\Z")
_DEMAND: Final = re.compile(
    r"[?:？：؟]\s*\Z|\?\s?\([^()]{1,80}\)\s*\Z|\b(?:enter|type|specify|select|choose|which|what)\b",
    re.IGNORECASE,
)
_ALONE: Final = re.compile(
    r"\s*(?:\[[^\[\]]{1,200}\]\s*[:?>：？]*|\([^()]{1,200}\)\s*[:?：？]|\(default [^()]{1,200}\)"
    r"|[^\W\d_]{2,20}(?:/[^\W\d_]{2,20}){1,6}\s*[:?>：？])\s*\Z"
)
_COUNTED: Final = re.compile(r"\s*\[\d+\]\s*>")
_LEFT_OPEN: Final = re.compile(
    r"(?:[?:;？：؟]|[?？؟:：]\s{0,2}[(\[][^()\[\]]{1,60}[)\]][:.]?)\s*\Z"
)
_NEAR: Final = 10
_ENTER: Final = re.compile(r"\b(?:press|hit)\b.{0,10}\b(?:enter|return)\b", re.IGNORECASE)
_EITHER: Final = re.compile(r"\w{2,20}\s?[/|]\s?\w{2,20}\Z")
_FRACTION: Final = re.compile(r"(?:\d{1,9}/\d{1,9}|[A-Za-z]-[A-Za-z])\Z")
"""Two numbers or letters with a sign between them, which are no default."""
_SEVERAL: Final = re.compile(r"\w[/|,]\w")
_POINTED: Final = re.compile(r"[^:?]*>\s*\Z")
_COUNTED_INPUT: Final = re.compile(r"\W*(?:in|out|cmd)\s*\Z", re.IGNORECASE)
"""What stands before the number of an input, in shells that count them."""
_LETTERS_TO_TYPE: Final = re.compile(
    rf"\w(?:(?:\s?[,/|]\s?| (?:{OR}) )\w){{1,12}}\Z", re.IGNORECASE
)
_NOT_THE_FILE: Final = re.compile(
    r"\s*(?:format|extension|encoding|pattern|prefix|suffix|template|length|filter)", re.IGNORECASE
)
_OTHER_ANSWERS: Final = re.compile(r"\b(?:or|enter|type)\b", re.IGNORECASE)
_MANY: Final = re.compile(r" or |\+/-")


def asks_yes_or_no(question: str) -> bool:
    """Return whether the form of the question allows no other answers than yes and no."""
    if _ABOUT_A_COMMAND.match(question):
        return True
    if _OPEN_QUESTION.search(question) or _LIST_OF_ANSWERS.match(question):
        return False
    if not _IS_QUESTION.search(question) or _RHETORICAL.search(question):
        return False
    last = _SENTENCE_END.split(question)[-1]
    found = any(map(_ASKS_YES_OR_NO.search, (question, last))) or _ENDS_YES_OR_NO.search(question)
    return bool(found or _ABOUT_A_FILE.search(question))


def is_an_answer_alone(line: str) -> bool:
    """Return whether the line is nothing but a bracketed answer, which needs the line above it.

    A number before a pointed bracket counts the inputs of a shell.
    """
    return bool(_ALONE.match(line)) and not _COUNTED.match(line)


def is_demanding(line: str) -> bool:
    """Return whether the line ends as a question does, or has a word of a demand."""
    return bool(_DEMAND.search(line)) or line.rstrip().endswith(">")


def is_either(text: str) -> bool:
    """Return whether a bracketed part is two words with a stroke between them."""
    return bool(_EITHER.match(text))


def is_open(line: str) -> bool:
    """Return whether the line ends in a question mark or a colon."""
    return bool(_IS_OPEN.search(line))


def is_left_open(line: str) -> bool:
    """Return whether a line above a prompt ends as a question does."""
    return bool(_LEFT_OPEN.search(line))


def is_told_above(default: str, above: list[str]) -> bool:
    """Return whether lines above show the default alone, and say what Enter does with it."""
    near = above[-_NEAR:]
    is_shown = any(line.strip() == default for line in near)
    return is_shown and any(_ENTER.search(line) for line in near)


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
        return bool(_PLACE.match(default) or _ENDS_IN_A_PLACE.search(question))
    if PATHS.match(question) or _asks_for_file_name(question):
        return True
    words = [found.end() for found in PLACES.finditer(question)]
    return (
        bool(words) and not question[words[-1] :].strip(" :") and not _IS_QUESTION.search(question)
    )


def _asks_for_file_name(question: str) -> bool:
    found = FILE_NAMES.search(question)
    if found is None or _NOT_THE_FILE.match(question, found.end()):
        return False
    return question.rstrip().endswith((":", "：")) or found[0].endswith("?")


def allows_other_than_yes_or_no(asides: list[str]) -> bool:
    """Return whether bracketed parts before a default of yes or no name other ways to answer."""
    return any(map(_OTHER_ANSWERS.search, asides))


def is_a_unit(text: str) -> bool:
    """Return whether a bracketed part names the unit of the number that is asked for."""
    return bool(UNITS.match(text))


def are_letters_to_type(text: str) -> bool:
    """Return whether a bracketed part looks like letters of which one is to be typed."""
    return bool(_LETTERS_TO_TYPE.match(text))


def asks_for_free_text(question: str, *, has_default: bool) -> bool:
    """Return whether the question is for something that a person makes up, such as a title."""
    if FREE_ALONE.match(question):
        return True
    words = question.strip(" \t:?>›").split()
    return (
        (has_default or len(words) > 1)
        and bool(FREE.search(question))
        and not CLOSED.search(question)
    )


def is_a_demand(before: str, after: str) -> bool:
    """Return whether the text around a bracketed value asks for one, and does not report it.

    A pointed bracket alone ends the prompt of a shell, which tells a state in its brackets.
    """
    if before.rfind("[") > 0 or _COUNTED_INPUT.match(before):
        return False
    return bool(_DEMAND.search(before) or (after.strip() and not _POINTED.match(after)))


def is_plain(text: str) -> bool:
    """Return whether a default has no brackets, which would make it more than a value."""
    return not any(char in "()[]{}<>" for char in text)


def is_value(text: str) -> bool:
    """Return whether the text can be a default: one word or path, and no word for nothing.

    Several words with strokes, bars or commas between them may be answers to choose from.
    """
    is_word = 0 < len(text) <= 200 and " " not in text and not _FRACTION.match(text)
    is_word = is_word and (not _SEVERAL.search(text) or bool(_PLACE.match(text)) or "://" in text)
    is_word = is_word and any(map(str.isalnum, text))
    return is_word and text.casefold() not in NO_VALUES
