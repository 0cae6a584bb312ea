"""Pages of a list whose next page begins behind a time.

Rows can share one microsecond. A page that ended among such rows would lose the rest of them,
because the next page has only older ones. So a page goes on to the end of them.
"""

from collections.abc import Callable, Sequence
from datetime import datetime
from itertools import takewhile
from typing import Final, TypeVar

MAX_TIED: Final = 1000
"""A page goes on by at most so many rows. Rows of the same time beyond that are on no page."""
Row = TypeVar("Row")


def whole_page(
    newest: Callable[[int], Sequence[Row]], limit: int, time_of: Callable[[Row], datetime]
) -> tuple[Sequence[Row], datetime | None]:
    """Return the rows of a page, and the time behind which the next one begins, if there is one.

    ``newest`` reads the newest so many rows in one statement, the newest first.
    """
    # One row more tells whether there is a next page.
    rows = newest(limit + 1)
    if len(rows) > limit and time_of(rows[limit]) == time_of(rows[limit - 1]):
        # All of them again: rows may have come meanwhile, and one statement agrees with itself.
        rows = newest(limit + MAX_TIED + 1)
    if len(rows) <= limit:
        return rows, None
    edge = time_of(rows[limit - 1])
    tied = takewhile(lambda row: time_of(row) == edge, rows[limit : limit + MAX_TIED])
    size = limit + sum(1 for _ in tied)
    return rows[:size], edge if len(rows) > size else None
