"""Arguments of tools that list something page by page, the newest first."""

from typing import Annotated

from pydantic import AwareDatetime, Field

PageSize = Annotated[int, Field(ge=1, le=100, description="At most this many, newest first.")]
Before = Annotated[
    AwareDatetime | None, Field(description="Only older ones: next_before of the previous page.")
]
