"""What a line of text looks like. Only ever a tie-breaker: nothing is typed or stopped because of it."""

import re
from enum import IntEnum
from typing import Final


class Likeness(IntEnum):
    """How much the text left of the cursor looks like a prompt."""

    NONE = 0
    """The cursor is at the start of a line."""
    TEXT = 1
    """The cursor was left behind some text."""
    PROMPT = 2
    """It reads like a prompt."""


_SECRET: Final = re.compile(
    r"(?:pass(?:word|wd|phrase|code)|\bpin\b|\bpw\b|secret|token|otp|api[ _-]?key|verification code)[^\n]*$", re.IGNORECASE
)
_ONE_KEY: Final = re.compile(r"any key|--more--|\(end\)|\(q\)uit|\bpress |\barrow keys|\btype '.'", re.IGNORECASE)
_PROMPT: Final = re.compile(
    r"(?:[?:>$#%»\u203a\u276f\])]|^\.\.\.|y/n|yes/no[^\n]*|continue\.*|any key[^\n]*|--more--[^\n]*|\(end\)"
    r"|\boptions?|choice|selection|enter|return[^\n]*)[\s:>.]*$",
    re.IGNORECASE,
)
_SHELL: Final = re.compile(r"[$#%>\u276f] ?$")


def likeness(line: str) -> Likeness:
    """How prompt-like a line is."""
    text = line.strip()
    if not text:
        return Likeness.NONE
    return Likeness.PROMPT if _PROMPT.search(text) or _SECRET.search(text) else Likeness.TEXT


def asks_for_secret(line: str) -> bool:
    """Whether the line names something that is not to be shown."""
    return bool(_SECRET.search(line))


def asks_for_one_key(line: str) -> bool:
    """Whether the line asks for a key rather than a line."""
    return bool(_ONE_KEY.search(line))


def reads_like_shell(line: str) -> bool:
    """Whether the line ends like a shell's prompt."""
    return bool(_SHELL.search(line))
