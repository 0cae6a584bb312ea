"""What the tools of background sessions share. camelCase and milliseconds stand in these models and nowhere else."""

from typing import Annotated
from uuid import UUID

from pydantic import ConfigDict, Field
from pydantic.alias_generators import to_camel

from projects.tools.base import ToolInput, ToolOutput
from projects.tools.terminal_output import MAX_WAIT_SECONDS

MAX_WAIT_MS = int(MAX_WAIT_SECONDS * 1000)

BackgroundId = Annotated[UUID, Field(description="The session, as start_command returned it.")]
RequestUuid = Annotated[
    UUID | None,
    Field(description="A fresh uuid of yours. Repeating a call with the same requestId never does anything twice; use it for retries."),
]


class CamelInput(ToolInput):
    """Arguments in camelCase."""

    model_config = ConfigDict(alias_generator=to_camel)


class CamelOutput(ToolOutput):
    """A result in camelCase, read from what the service names in its own way."""

    model_config = ConfigDict(alias_generator=to_camel, validate_by_name=True)


class DeliveryOutput(ToolOutput):
    """Whether it reached the program."""

    success: bool
    hint: str | None = Field(default=None, exclude_if=lambda hint: not hint, description="If not: what to do.")
