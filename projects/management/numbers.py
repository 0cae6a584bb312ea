"""Numbers that people type on a command line."""

from argparse import ArgumentTypeError
from typing import Final

_MOST: Final = 2**62
"""No table has more rows. A database takes no number that is much greater."""


def count(text: str) -> int:
    """The number of things that an option asks for: one or more. For ``type`` of an argument."""
    if not text.isdecimal() or int(text) < 1:
        raise ArgumentTypeError("must be a number from 1 on")
    return min(int(text), _MOST)
