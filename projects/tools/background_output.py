"""What the tools of background sessions share. camelCase and milliseconds stand in these models and nowhere else."""

from typing import Annotated, Any
from uuid import UUID

from pydantic import Field

from projects.background import BackgroundOutput
from projects.tools.base import ToolOutput
from projects.tools.terminal_output import MAX_WAIT_SECONDS

MAX_WAIT_MS = int(MAX_WAIT_SECONDS * 1000)

BackgroundId = Annotated[UUID, Field(description="The session, as start_command returned it.")]
RequestUuid = Annotated[
    UUID | None,
    Field(description="A fresh uuid of yours. Repeating a call with the same requestId never does anything twice; use it for retries."),
]


class DeliveryOutput(ToolOutput):
    """Whether it reached the program."""

    success: bool
    hint: str | None = Field(default=None, exclude_if=lambda hint: not hint, description="If not: what to do.")


def end_of(output: BackgroundOutput) -> dict[str, Any]:
    """How a program ended, as these tools say it; nothing of a running one."""
    return {
        "exitCode": output.exit_code,
        "signal": output.signal,
        "endReason": output.end_reason,
        "endedBy": output.ended_by,
    }
