"""The first of several moments, each of which may be missing; the holder asks in every turn."""

from collections.abc import Iterable


def earliest(moments: Iterable[float | None]) -> float | None:
    """Return the first moment, None if there is none."""
    first: float | None = None
    for moment in moments:
        if moment is not None and (first is None or moment < first):
            first = moment
    return first
