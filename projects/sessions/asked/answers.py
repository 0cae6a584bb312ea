"""The answers that a prompt spells out, and the one among them that Enter gives."""

import re
from typing import Final, NamedTuple

from projects.sessions.asked.words import is_a_yes_or_a_no, is_short_for, means_yes_and_no

OPTION: Final = re.compile(r"[^\s\[\](){}<>\"'`„“”«»=;\\]{1,24}\Z")
FEW: Final = 3


class Options(NamedTuple):
    """The answers as a prompt spells them; ``are_all`` is False if it leaves some out."""

    answers: tuple[str, ...]
    default: str | None = None
    are_all: bool = True

    @property
    def are_yes_and_no(self) -> bool:
        """True if they mean yes and no, whether or not a question mark shows help."""
        return means_yes_and_no(set(self.answers) - {"?"})


def in_capitals(answers: tuple[str, ...], *, few: int = FEW) -> str | None:
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


def few_of(answers: tuple[str, ...]) -> int:
    """Return among how many answers a capital tells the default, though it is no yes and no no."""
    return 0 if {"y", "n"} <= set(answers) or {"yes", "no"} <= set(answers) else FEW


def named_in(text: str, answers: tuple[str, ...]) -> str | None:
    """Return the answer that ends a text such as ``default=N``, in any language.

    A word for yes or no stands for the letter that begins it, and such a letter for its word.
    """
    if text in answers:
        return text
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


def is_not_available(answers: tuple[str, ...]) -> bool:
    """Return whether two answers may be ``n/a``, for something that there is not."""
    # "n/a" has the letters of a yes and a no in Czech.
    is_letter = len(answers[1]) == 1 and answers[1].casefold() not in {"y", "j"}
    return answers[0].casefold() in {"n", "н"} and is_letter
