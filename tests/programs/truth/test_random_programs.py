"""Random programs: a claim with evidence ``kernel`` is never early, and each wait is told at last.

The programs are made of parts, and their own clock tells the truth. ``--long`` plays 20,000 of
them. ``python -m benchmarks.random_programs --first SEED --count 1`` repeats one.
"""

import pytest

from tests.support.random_programs.plans import Plan, plan_of
from tests.support.random_programs.play import play_all, reduced

_FEW = 200
_MANY = 20_000


def _beside(kind: str, where: str) -> Plan:
    """A parent waits for a worker, and a child of the same group reads the keyboard."""
    return _program("same", "beside", kind, where, "read")


def _program(reader: str, way: str, kind: str, where: str, how: str) -> Plan:
    source = {"kind": kind, "where": where, "doing": "sleep", "closes": True, "has_keyboard": False}
    step = {"way": way, "text": "", "seconds": 0.3, "how": how, "sources": [source]}
    return {
        "reader": reader,
        "mode": "lines",
        "own_group": False,
        "steps": [{**step, "reader": "read"}],
        "final": {"how": "read", "idle": [], "text": ""},
    }


def _with(plan: Plan, **changes: str) -> Plan:
    plan["steps"][0]["sources"][0].update(changes)
    return plan


DISPROVED_ONCE = {
    "an orphan holds a pipe": _program("same", "together", "pipe", "orphan", "poll"),
    "an orphan holds an event": _program("same", "together", "eventfd", "orphan", "epoll"),
    "a thread reads from an orphan": _program("thread", "apart", "pipe", "orphan", "read"),
    "a parent reads from a session": _beside("pipe", "session"),
    "a parent reads from a group": _beside("pipe", "group"),
    "a parent reads from an orphan": _beside("pipe", "orphan"),
    "a parent reads an alarm": _beside("alarm", "child"),
    "a parent waits for a worker apart": _with(
        _beside("process", "group"), doing="wait for another"
    ),
}


@pytest.mark.parametrize("plan", DISPROVED_ONCE.values(), ids=DISPROVED_ONCE)
async def test_what_was_claimed_early_once_is_not(plan: Plan) -> None:
    (outcome,) = await play_all([plan])
    assert "kernel" not in outcome.early


@pytest.mark.timeout(7200)
async def test_no_proof_fails_for_a_random_program(is_long: bool) -> None:
    outcomes = await play_all([plan_of(seed) for seed in range(_MANY if is_long else _FEW)])
    early = next((outcome.plan for outcome in outcomes if outcome.is_disproved), None)
    assert early is None, (
        f"an early claim, without the parts that need not be: {await reduced(early)}"
    )
    assert [outcome.plan for outcome in outcomes if outcome.is_missed] == []
