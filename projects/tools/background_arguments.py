"""Arguments that the tools of background sessions share: in camelCase, and with milliseconds."""

from typing import Annotated
from uuid import UUID

from pydantic import ConfigDict, Field
from pydantic.alias_generators import to_camel

from projects.tools.base import ToolInput
from projects.tools.terminal_arguments import MAX_WAIT_SECONDS

MAX_WAIT_MS = int(MAX_WAIT_SECONDS * 1000)

BackgroundId = Annotated[
    UUID,
    Field(description="Id of the session, as start_command returned it. || Id of the session."),
]
RequestUuid = Annotated[
    UUID | None,
    Field(
        description=(
            "A fresh uuid of yours. Repeating a call with the same requestId never does "
            "anything twice; use it for retries."
        )
    ),
]


class CamelInput(ToolInput):
    """Arguments whose names are in camelCase."""

    model_config = ConfigDict(alias_generator=to_camel)
