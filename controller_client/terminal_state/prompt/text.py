"""Judgements on a line of text: does it look like a prompt, or like a question for a secret?

Text only breaks ties: no input is typed or stopped because of it, least of all a stored secret.
"""

import re
from enum import IntEnum
from typing import Final


class Likeness(IntEnum):
    """The degree to which the text left of the cursor looks like a prompt."""

    NONE = 0
    """The cursor is at the start of a line."""
    TEXT = 1
    """The cursor was left behind some text."""
    PROMPT = 2
    """It reads like a prompt."""


_WORD: Final = (
    r"(?:pass(?:[ -]?(?:word|phrase|code)|wd)|\b(?:pin(?: code)?|pwd?|otp|mot de "
    r"passe|passwort|kennwort|contrase\u00f1a)|secret|token"
    r"|\b(?:api|access|secret|private|encryption|recovery|licen[cs]e|product|activation)[ "
    r"_-]?key|(?:verification|authentication|security|one[ -]time|2fa)[ -]code)"
)
_REMARK: Final = r"\([^()\n]*\)|\[[^\[\]\n]*\]"
# Text between the word and the end of its question: remarks, then whom or what it is for. All is
# taken in one way only: the program chooses the text, and must not choose how long a look takes.
_ADDITION: Final = (
    rf"(?:\s*(?:{_REMARK}))*+"
    r"(?:(?:\s+(?:for|of|to|on|at|from|again|once more|and|or|then)\b|\s*,)"
    rf"(?:{_REMARK}|[^\n?])*+)?+"
)
_QUESTION_END: Final = (
    r"(?:(?:\s*[:?.\uff1a\u2023\u2026\u203a\u25b8\u276f\u00bb\u00b7-])*(?:\s*[(\[][^()\[\]\n]*[)\]])?"
    r"|\s+>|(?<=word)>)"
)
_MASK: Final = r"\s*[*\u2022\u25cf]*\s*$"
# Tests pass, and compilers make passes: by itself the word has to be the whole question.
_WHOLE_QUESTION: Final = r"^\W*(?:(?:enter|your|the|new|old|current)\s+){0,3}pass(?=\s*[:?])"
_SECRET: Final = re.compile(
    rf"(?:{_WORD}|{_WHOLE_QUESTION}){_ADDITION}{_QUESTION_END}{_MASK}", re.IGNORECASE
)
_YES_OR_NO: Final = re.compile(
    r"[(\[]\s*y(?:es)?\s*[/|,]\s*n(?:o)?\b[^()\[\]]*[)\]]\W*$|\by(?:es)?/no?\W*$", re.IGNORECASE
)
_ABOUT_A_SECRET: Final = re.compile(
    rf"\b(?:name|path|file|folder|directory|location|label|id|type|kind|length|owner)\s+(?:of|for)\s+(?:\w+\s+){{0,2}}{_WORD}"
    rf"|\b(?:which|select|choose|pick)\s+(?:\w+\s+){{0,2}}{_WORD}",
    re.IGNORECASE,
)
# Measures, bars and plural forms in brackets ask nothing, as other remarks at the end of a line do.
_MEASURE: Final = re.compile(
    r"(?:[(\[]\s*(?:~?\d[\d.,:]*\s*(?:%|[kmgt]?i?(?:b|bits?|bytes?)(?:/s|ps)?|[mn\u00b5]?s"
    r"|sec(?:onds?)?|min(?:utes?)?|h(?:ours?)?|files?)|\d+\s*(?:/|of)\s*\d+|[#=][#=>][#=>.* -]*)"
    r"\s*[)\]]|(?<=\w)\((?:e?s|ies)\))$",
    re.IGNORECASE,
)
_HINT_OF_KEY: Final = re.compile(
    r"any key|\(q\)uit|\bpress |\btype '.'|\benter to \w", re.IGNORECASE
)
_SURELY_KEY: Final = re.compile(r"--more--|\(end\)|\barrow keys|\bpossibilities\b", re.IGNORECASE)
_PROMPT: Final = re.compile(
    r"(?:[?:>$#%»\u203a\u276f\])]|^\.\.\.|y/n|yes/no[^\n]*|continue\.*|any "
    r"key[^\n]*|--more--[^\n]*|\(end\)"
    r"|\bplease (?:enter|type|input|give|provide|specify|choose|select|pick)\b[^\n]*"
    r"|^\? \S[^\n]*|\boptions?|choice|selection|enter|return[^\n]*)[\s:>.]*$",
    re.IGNORECASE,
)
# "read>" is the prompt of a command of fish that reads a line, "?#" that of "select" in zsh.
_SHELL: Final = re.compile(r"(?<!^read)(?<!^\?)[$#%>\u276f] ?$")


# What a program asks stands at the end of its text, which may be as long as a screen.
_MOST_CHARS: Final = 500


def likeness(line: str) -> Likeness:
    """Return the degree to which a line looks like a prompt."""
    text = line[-_MOST_CHARS:].strip()
    if not text:
        return Likeness.NONE
    is_prompt = _PROMPT.search(_MEASURE.sub("", text)) or asks_for_secret(text)
    return Likeness.PROMPT if is_prompt else Likeness.TEXT


def asks_for_secret(line: str) -> bool:
    """Return whether the line is a question that ends in the name of a secret."""
    line = line[-_MOST_CHARS:]
    return bool(_SECRET.search(line)) and not (
        _YES_OR_NO.search(line) or _ABOUT_A_SECRET.search(line)
    )


def asks_for_one_key(line: str) -> bool:
    """Return whether the line asks for a key rather than a line."""
    line = line[-_MOST_CHARS:]
    return asks_surely_for_key(line) or bool(_HINT_OF_KEY.search(line))


def asks_surely_for_key(line: str) -> bool:
    """Return whether the line asks for a key even where a line editor reads."""
    return bool(_SURELY_KEY.search(line))


def reads_like_shell(line: str) -> bool:
    """Return whether the line ends like the prompt of a shell."""
    return bool(_SHELL.search(line))
