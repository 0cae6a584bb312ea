"""In no turn is a claim with evidence ``kernel`` early, however short the work before the read.

``--long`` takes 50,000 turns. ``python -m benchmarks.turn_races`` measures them.
"""

import pytest

from tests.support.races.turns import LONG_SECONDS, MODES, SHORT_SECONDS, turns

_FEW, _MANY = 25, 5_500
_FEW_LONG, _MANY_LONG = 2, 60


@pytest.mark.timeout(7200)
@pytest.mark.parametrize("mode", MODES)
def test_no_turn_is_claimed_before_its_read(mode: str, is_long: bool) -> None:
    short = turns(mode, _MANY if is_long else _FEW, SHORT_SECONDS)
    long = turns(mode, _MANY_LONG if is_long else _FEW_LONG, LONG_SECONDS)
    taken = [*short, *long]
    assert [turn for turn in taken if turn.is_early and turn.evidence == "kernel"] == []
    assert [turn for turn in taken if turn.evidence == "missed"] == []
