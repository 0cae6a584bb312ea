"""The first of several moments."""

import pytest

from controller_client.holder.deadlines import earliest


@pytest.mark.parametrize(
    ("moments", "first"),
    [([], None), ([None, None], None), ([3.0, None, 2.0, 2.5], 2.0), ([None, 0.0, 1.0], 0.0)],
)
def test_the_earliest_moment_counts_and_a_missing_one_does_not(
    moments: list[float | None], first: float | None
) -> None:
    assert earliest(moments) == first
