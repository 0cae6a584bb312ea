"""Standard input of commands that are given what may not be an argument."""

import sys

from projects.management.refusals import invalid


def input_text() -> str:
    """All of standard input. Raises CommandError, which never quotes it, unless it is UTF-8."""
    try:
        text = sys.stdin.read()
        # Where the locale is none, Python lets bytes through that are no text.
        text.encode()
    except UnicodeError:
        raise invalid(
            "standard input is not UTF-8 text; nothing was stored", "Write it as UTF-8"
        ) from None
    return text
