"""The one word that a prompt wants typed before it goes on."""

import re
from typing import Final

from projects.sessions.asked.words import is_a_word_for_yes

_QUOTED: Final = re.compile(
    r"'([^']{1,60})'|\"([^\"]{1,60})\"|`([^`]{1,60})`|“([^”]{1,60})”|„([^“”]{1,60})[“”]"
    r"|«\s?([^»]{1,60}?)\s?»|「([^」]{1,60})」"
)
TYPE: Final = re.compile(
    r"\b(?:type|typing|enter|entering|write|input|tapez|saisissez|entrez|écrivez"
    r"|geben sie|tippen sie|schreiben sie"
    r"|escrib[aei]r?|teclee|introduzca|introducir|digite|digitare|digita|scrivi|typ|wpisz"
    r"|введите|наберите|введіть|yazın|skriv|ange|zadejte|napište|kirjoita|írja|wpisać|wprowadź|digiteu|escriviu|scrieți"
    r"|γράψτε|πληκτρολογήστε)\b|输入|輸入|入力|입력|اكتب|הקלד",
    re.IGNORECASE,
)
_TELLS: Final = re.compile(
    rf"{TYPE.pattern}|键入|鍵入|タイプ|\b(?:press|answer|choose|select|reply|respond|only|yes)\b",
    re.IGNORECASE,
)
"""What every line has that ``word_above`` or ``told_above`` understands."""
_AIM: Final = re.compile(
    r"\b(?:by typing|(?:please|must) confirm"
    r"|to (?:confirm|continue|proceed|approve|accept|agree|delete|destroy|remove|overwrite)"
    r"|confirmation|in capital letters|(?:in )?upper ?case|confirmer|continuer|bestätig(?:en|ung)"
    r"|fortzufahren|confirmar|continuar|confermare|continuare|bevestigen|door te gaan"
    r"|potwierdzić|kontynuować|подтвер\w+|продолж\w+|підтвер\w+|продовж\w+|onaylamak|devam"
    r"|bekräfta|fortsätta|potvr\w+|pokrač\w+)\b|确认|確認|继续|続行|확인|계속|للتأكيد|לאישור",
    re.IGNORECASE,
)
_CAPITALS: Final = re.compile(
    r"in (?:all )?capital letters|in (?:all )?caps|(?:in )?upper ?case|in großbuchstaben"
    r"|en (?:lettres )?majuscules?|en mayúsculas|in (?:lettere )?maiuscol[eo]"
    r"|em (?:letras )?maiúsculas"
    r"|in hoofdletters|(?:wielkimi|dużymi|drukowanymi) literami|(?:заглавными|прописными) буквами"
    r"|великими літерами|med (?:versaler|stora bokstäver|store bokstaver)|velkými písmeny"
    r"|büyük harfler?le|大文字で?|大写(?:字母)?|大寫(?:字母)?|대문자로?",
    re.IGNORECASE,
)
_BARE: Final = re.compile(
    r"\btype (?:(?:the word |uppercase )?(?P<first>[^\s,;:'\"`]{1,60})(?: \([^()]{1,40}\))? to "
    r"(?:confirm|continue|proceed|approve|delete|destroy)"
    r"|uppercase (?P<upper>\w{1,20}))"
    r"|\bto (?:confirm|continue|proceed|delete|destroy)\b[^,.;:]{0,60}, (?:please )?type "
    r"(?P<last>[^\s,;:'\"`]{1,60})",
    re.IGNORECASE,
)
_BARE_YES: Final = re.compile(
    rf"(?:{TYPE.pattern})\s?(?:the word )?([^\W\d_]{{2,20}})\b", re.IGNORECASE
)
_BARE_EAST: Final = re.compile(
    r"(?:输入|輸入|键入|鍵入)\s?([A-Za-z]{2,20})\s?(?:以|来|來)?\s?(?:确认|確認|继续|繼續)"
    r"|(?:続行|確認|削除|実行|続ける)[^A-Za-z]{0,20}([A-Za-z]{2,20})\s?(?:と|を)\s?(?:入力|タイプ)"
    r"|(?:계속|확인|삭제|진행)[^A-Za-z]{0,20}([A-Za-z]{2,20})\s?(?:을|를|라고)?\s?입력"
)
_LONG_WORD: Final = 6
"""Words in capitals that are shorter can be the names of what is to be given, such as PIN."""
_ASIDE: Final = re.compile(r"(?:[(\[（]|[?？!.]\s)([^()\[\]（）?？]{3,80})[)\]）]?[\s:?.!：]*\Z")
_COURTESY: Final = re.compile(r"\b(?:please|the word|bitte|need to)\b", re.IGNORECASE)
_NAME_OF: Final = re.compile(
    r"\b(?:type|enter|retype|re-enter)(?: in| out)? (?:the |its |your )?(?:(?:full |exact )?name "
    r"of (?:the |this |your )?(?P<of>\w{2,30})|(?P<thing>\w{2,30})(?:'s)? name)\b",
    re.IGNORECASE,
)
_TO_CONFIRM: Final = re.compile(
    r"\bto (?:confirm|delete|destroy|remove|proceed|be (?:deleted|destroyed|removed|erased))\b",
    re.IGNORECASE,
)
_ONLY: Final = re.compile(
    r"\bonly ['\"“`]([^'\"”`]{1,60})['\"”`] (?:will be|is) accepted", re.IGNORECASE
)
_ANOTHER: Final = re.compile(
    r"(?:\bor (?:type |enter )?|[,;] (?!please|type|enter|you))['\"`]?(?!press |hit )\S{1,60} "
    r"to \w",
    re.IGNORECASE,
)
"""A second word that the same line offers."""
_OTHERS: Final = "a an any anything something enter return the it its this that one your y n"
_NEAR: Final = 4
_NAMES_A_THING: Final = re.compile(r"\s*confirm(?:ation)? \w", re.IGNORECASE)
_NO_WORDS: Final = frozenset(_OTHERS.split())
_GENERAL: Final = re.compile(
    r"\s*(?:enter a value|confirm(?:ation)?(?: \w{1,12}){0,2}|response|answer|your answer)?"
    r"\s?[:>?]?\]?\s*\Z",
    re.IGNORECASE,
)


def word_in(line: str) -> str | None:
    """Return the word that the line wants, if it wants exactly that."""
    if _ANOTHER.search(line):
        return None
    bare = _BARE.search(line)
    if bare and bare["upper"]:
        return str(bare["upper"]).upper()
    if bare and (word := str(bare["first"] or bare["last"]).strip(".()")):
        return None if word.casefold() in _NO_WORDS else word
    quoted = [str(word) for found in _QUOTED.finditer(line) for word in found.groups() if word]
    if not quoted:
        return _bare_yes(line)
    is_wanted = TYPE.search(line) and (_AIM.search(line) or _CAPITALS.search(line))
    if len(quoted) != 1 or not (is_wanted or _is_aside(line, quoted[0])):
        return None
    return quoted[0].upper() if _CAPITALS.search(line) else quoted[0].strip()


def _bare_yes(line: str) -> str | None:
    """Return the word without quotes that is to be typed: for yes, or a long one in capitals."""
    found = _BARE_EAST.search(line) or (_AIM.search(line) and _BARE_YES.search(line))
    word = next((str(word) for word in found.groups() if word), "") if found else ""
    is_one = is_a_word_for_yes(word) or (word.isupper() and len(word) >= _LONG_WORD)
    return word if is_one and word.casefold() not in _NO_WORDS else None


def _is_aside(line: str, quoted: str) -> bool:
    """Return whether the line ends in nothing but a demand for a quoted word for yes."""
    aside = _ASIDE.search(line)
    if aside is None or not is_a_word_for_yes(quoted.strip()) or not TYPE.search(aside[1]):
        return False
    rest = aside[1]
    for known in (_QUOTED, TYPE, _CAPITALS, _COURTESY):
        rest = known.sub("", rest)
    return not rest.strip(" :.,")


def thing_to_name(line: str) -> str | None:
    """Return what the line wants named, such as ``database``, to confirm something."""
    found = _NAME_OF.search(line)
    return str(found["of"] or found["thing"]) if found and _TO_CONFIRM.search(line) else None


def name_above(lines: list[str], thing: str) -> str | None:
    """Return the one name that the lines above give the thing."""
    named = re.compile(
        rf"\b{re.escape(thing)}\b\s*[:：]\s?([^\s'\"`]{{1,60}})\s*\Z"
        rf"|\b{re.escape(thing)}(?: named| called)? ['\"`‘“]([^'\"`’”]{{1,60}})['\"`’”]"
        rf"|['\"`‘“]([^'\"`’”]{{1,60}})['\"`’”] {re.escape(thing)}\b",
        re.IGNORECASE,
    )
    names = {
        str(name)
        for line in lines
        for found in named.finditer(line)
        for name in found.groups()
        if name
    }
    return names.pop() if len(names) == 1 else None


def may_tell_answers(lines: list[str]) -> bool:
    """Return whether lines above a prompt have a word that tells what is to be typed.

    Most lines have none, and one search in all of them costs less than each judgement of one.
    """
    return bool(_TELLS.search("\n".join(lines)))


def leaves_it_to_lines_above(line: str) -> bool:
    """Return whether the line says only that something is to be typed."""
    return bool(_GENERAL.match(line))


def lines_for(line: str, above: list[str]) -> list[str]:
    """Return the lines that may tell the word: the nearest ones if the line names a thing."""
    return above[-_NEAR:] if _NAMES_A_THING.match(line) else above


def word_above(lines: list[str]) -> str | None:
    """Return the word that one of the lines above wants, the nearest first."""
    for line in reversed(lines):
        only = _ONLY.search(line)
        if only or (word := word_in(line)) is not None:
            return only[1] if only else word
    return None
