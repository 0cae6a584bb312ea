"""Arguments that every tool which starts a program shares, and the errors it may answer with."""

from typing import Annotated, Final, Literal

from pydantic import AfterValidator, Field

from projects.errors.base import ControllerActionError
from projects.errors.calls import RequestIdReused
from projects.errors.commands import (
    CommandHasNul,
    CommandNotAllowed,
    CwdNotAllowed,
    EmptyCommand,
    StartFailed,
)
from projects.errors.hosts import (
    ControllerAmbiguous,
    ControllerNotFound,
    ControllerOffline,
    NoControllerEnrolled,
)
from projects.errors.uncertain import RequestNotKnown

Command = Annotated[
    str, Field(description="The command line, such as 'git status' or 'make -j2 2>&1 | tail -50'.")
]
ControllerName = Annotated[
    str | None,
    Field(description="Name or id of the host; may be left out when the project has only one."),
]
Directory = Annotated[
    str | None,
    Field(
        description=(
            "Directory to start in; default: the home directory of the user that programs run as."
        )
    ),
    # What a model gives that wants to leave it out.
    AfterValidator(lambda directory: directory or None),
]
StreamViewed = Annotated[
    Literal["text", "raw"],
    Field(
        description=(
            "text: escape sequences and control characters are removed; raw: the output "
            "as it came, with its colours."
        )
    ),
]
Variables = Annotated[
    dict[str, str] | None, Field(description="Variables to add to the program's environment.")
]

START_ERRORS: Final[tuple[type[ControllerActionError], ...]] = (
    EmptyCommand,
    CommandHasNul,
    CommandNotAllowed,
    CwdNotAllowed,
    NoControllerEnrolled,
    ControllerNotFound,
    ControllerAmbiguous,
    ControllerOffline,
    RequestIdReused,
    RequestNotKnown,
    StartFailed,
)
