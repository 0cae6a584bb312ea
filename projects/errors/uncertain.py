"""Errors of a command whose outcome the server does not know.

The server never reports *not known* as *not done*. None of these errors is retryable: a second try
may do the work twice, and only the program's own output or effects show what happened.
"""

from typing import Final
from uuid import UUID

from projects.errors.base import Conflict, Unavailable
from projects.errors.inputs import InputRefused

START_LOST: Final = "START_LOST"
"""Of a session: its START was sent, and nobody ever said what became of it."""
INPUT_UNCONFIRMED: Final = "INPUT_UNCONFIRMED"
"""Of an input: it was sent, and nobody ever said what became of it, or it was typed in part."""
INPUT_BLOCKED: Final = "INPUT_BLOCKED"
"""Of an input: the program does not read.

The part that the terminal or the pipe had taken stays there.
"""
START_LOST_TEXT: Final = (
    "the host was sent the command and never said what became of it: it is not known whether "
    "the program ran"
)
ENDED_MEANWHILE: Final = (
    "the session ended before the host had confirmed the input: it is not known "
    "whether it was typed"
)
ENDED_BEFORE: Final = "the program ended before the input could be typed"


class StartLost(Unavailable):
    """The host was sent the command and never said what became of it.

    Whether the program ran is not known.
    """

    code = START_LOST
    retryable = False
    hint = (
        "Look at what the program would have changed before you start it again: it may have "
        "done its work already."
    )

    def __init__(self) -> None:
        super().__init__(START_LOST_TEXT)


class RequestNotKnown(Conflict):
    """The database was restored, and may have forgotten a call with this ``request_id``.

    Whether the call was made before is not known, so it is not made again. ``fresh`` is an id that
    was surely not used before.
    """

    code = "REQUEST_NOT_KNOWN"

    def __init__(self, fresh: UUID) -> None:
        self.hint = (
            "If you may have made this call before, look first at what it would have done. If you "
            f"surely have not, make it with request_id {fresh}; other new ids should be UUIDs of "
            "version 7, which say when they were made."
        )
        super().__init__(
            "the server's database was restored lately: it is not known whether a call with this "
            "request_id was made before"
        )


class InputUnconfirmed(Conflict):
    """An input was sent, and the host never said what became of it, or a part of it was typed.

    What the program read is not known.
    """

    code = INPUT_UNCONFIRMED
    hint = (
        "Do not type it again before you have looked. read_session_output shows what the "
        "program made of it."
    )

    def __init__(self, message: str) -> None:
        super().__init__(message or ENDED_MEANWHILE)


def input_error(code: str, message: str) -> Conflict:
    """The error of an input that was settled with the failure ``code``."""
    if code == INPUT_UNCONFIRMED:
        return InputUnconfirmed(message)
    return InputRefused(code, message or "the host refused it")
