"""Arguments of tools that list something page by page, the newest first."""

from datetime import UTC, datetime
from typing import Annotated

from pydantic import AfterValidator, AwareDatetime, Field
from pydantic_core import PydanticCustomError


def _in_utc(value: datetime) -> datetime:
    """The same moment in UTC, as the database compares it."""
    try:
        return value.astimezone(UTC)
    except OverflowError:
        raise PydanticCustomError(
            "date_out_of_range", "must lie in the years 1 to 9999 in UTC"
        ) from None


PageSize = Annotated[int, Field(ge=1, le=100, description="At most this many, newest first.")]
Before = Annotated[
    Annotated[AwareDatetime, AfterValidator(_in_utc)] | None,
    Field(description="Only older ones: next_before of the previous page."),
]
