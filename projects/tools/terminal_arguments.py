"""Arguments that the tools of sessions and terminals share."""

from typing import Annotated
from uuid import UUID

from pydantic import Field

from projects.sessions.turns import MAX_OUTPUT_BYTES, MIN_OUTPUT_BYTES

MAX_WAIT_SECONDS = 30.0

SessionId = Annotated[
    UUID,
    Field(
        description="Id of the session, as start_interactive_command returned it. || Id of the "
        "session, as list_sessions shows it."
        " || Id of the session."
    ),
]
RequestId = Annotated[
    UUID | None,
    Field(
        description=(
            "A fresh uuid of yours. Repeating a call with the same request_id never does "
            "anything twice; use it for retries."
        )
    ),
]
WaitSeconds = Annotated[
    float,
    Field(
        ge=0,
        le=MAX_WAIT_SECONDS,
        allow_inf_nan=False,
        description=(
            "How long this call may wait for a prompt or the program's end. It returns as"
            " soon as one comes. This is not a lifetime."
        ),
    ),
]
WaitFor = Annotated[
    str | None,
    Field(
        description=(
            "Also return when this RE2 expression matches the new output. Rarely needed: "
            "prompts are recognised without it."
        )
    ),
]
OutputBudget = Annotated[
    int,
    Field(
        ge=MIN_OUTPUT_BYTES,
        le=MAX_OUTPUT_BYTES,
        description=(
            "Return when this many bytes have come. If there are more, their head and "
            "tail are shown."
        ),
    ),
]
Rows = Annotated[int, Field(description="Height of the terminal, 1 to 500.")]
Columns = Annotated[int, Field(description="Width of the terminal, 1 to 1000.")]
