"""Schedules of faults: from the seed alone, one fault of a target at a time."""

from itertools import combinations

import pytest

from chaos.faults.acts import ACTS
from chaos.faults.kinds import KINDS, PROFILES
from chaos.faults.schedule import schedule


@pytest.mark.parametrize("profile", PROFILES)
def test_a_seed_gives_the_same_schedule_again_and_another_seed_another(profile: str) -> None:
    kinds = [KINDS[name] for name in PROFILES[profile]]
    first = schedule(7, 300, kinds)
    assert first == schedule(7, 300, kinds)
    assert first != schedule(8, 300, kinds)


def test_faults_of_one_target_never_overlap() -> None:
    faults = schedule(3, 2000, list(KINDS.values()), every=2)
    overlaps = [
        (one, other)
        for one, other in combinations(faults, 2)
        if KINDS[one.kind].targets & KINDS[other.kind].targets
        and other.at < one.at + one.seconds
        and one.at < other.at + other.seconds
    ]
    assert overlaps == []


def test_each_kind_comes_before_any_comes_twice() -> None:
    kinds = list(KINDS.values())
    first = [fault.kind for fault in schedule(5, 4000, kinds)][: len(kinds)]
    assert sorted(first) == sorted(KINDS)


def test_every_kind_can_be_done() -> None:
    assert set(ACTS) == set(KINDS)
