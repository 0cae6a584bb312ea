"""The one word that a prompt wants typed before it goes on."""

import re
from typing import Final

_QUOTED: Final = re.compile(
    r"'([^']{1,60})'|\"([^\"]{1,60})\"|`([^`]{1,60})`|“([^”]{1,60})”|„([^“”]{1,60})[“”]"
    r"|«\s?([^»]{1,60}?)\s?»|「([^」]{1,60})」"
)
_TYPE: Final = re.compile(
    r"\b(?:type|enter|write|input|tapez|saisissez|entrez|écrivez|geben sie|tippen sie|schreiben sie"
    r"|escrib[ae]|teclee|introduzca|digite|digitare|digita|scrivi|typ|wpisz|введите|наберите"
    r"|введіть|yazın|skriv|ange|zadejte|napište|kirjoita|írja)\b|输入|輸入|入力|입력|اكتب|הקלד",
    re.IGNORECASE,
)
_AIM: Final = re.compile(
    r"\b(?:to (?:confirm|continue|proceed|approve|accept|agree|delete|destroy|remove|overwrite)"
    r"|confirmation|in capital letters|(?:in )?upper ?case|confirmer|continuer|bestätig(?:en|ung)"
    r"|fortzufahren|confirmar|continuar|confermare|continuare|bevestigen|door te gaan"
    r"|potwierdzić|kontynuować|подтвер\w+|продолж\w+|підтвер\w+|продовж\w+|onaylamak|devam"
    r"|bekräfta|fortsätta|potvr\w+|pokrač\w+)\b|确认|確認|继续|続行|확인|계속|للتأكيد|לאישור",
    re.IGNORECASE,
)
_CAPITALS: Final = re.compile(r"in capital letters|upper ?case", re.IGNORECASE)
_BARE: Final = re.compile(
    r"\btype (?:(?:the word |uppercase )?(?P<first>[^\s,;:'\"`]{1,60})(?: \([^()]{1,40}\))? to "
    r"(?:confirm|continue|proceed|approve|delete|destroy)"
    r"|uppercase (?P<upper>\w{1,20}))"
    r"|\bto (?:confirm|continue|proceed|delete|destroy)\b[^,.;:]{0,60}, (?:please )?type "
    r"(?P<last>[^\s,;:'\"`]{1,60})",
    re.IGNORECASE,
)
_ONLY: Final = re.compile(
    r"\bonly ['\"“`]([^'\"”`]{1,60})['\"”`] (?:will be|is) accepted", re.IGNORECASE
)
_ANOTHER: Final = re.compile(
    r"\bor (?:type |enter )?['\"`]?(?!press |hit )\S{1,60} to \w", re.IGNORECASE
)
"""A second word that the same line offers."""
_OTHERS: Final = "a an any anything something enter return the it one your y n"
_NO_WORDS: Final = frozenset(_OTHERS.split())
_GENERAL: Final = re.compile(
    r"\s*(?:enter a value|confirm(?:ation)?|response|answer|your answer)?\s?[:>?]?\s*\Z",
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
    quoted = [word for found in _QUOTED.finditer(line) for word in found.groups() if word]
    if len(quoted) != 1 or not _TYPE.search(line) or not _AIM.search(line):
        return None
    return str(quoted[0]).upper() if _CAPITALS.search(line) else str(quoted[0]).strip()


def leaves_it_to_lines_above(line: str) -> bool:
    """Return whether the line says only that something is to be typed."""
    return bool(_GENERAL.match(line))


def word_above(lines: list[str]) -> str | None:
    """Return the word that one of the lines above wants, the nearest first."""
    for line in reversed(lines):
        only = _ONLY.search(line)
        if only or (word := word_in(line)) is not None:
            return only[1] if only else word
    return None
