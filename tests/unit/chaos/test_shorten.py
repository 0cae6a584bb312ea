"""Shortening finds the faults that a failure needs, and asks for few runs."""

from chaos.faults.schedule import Fault
from chaos.shorten import shortened

_FAULTS = [Fault(number=n, kind="link_cut", at=n, seconds=0.0, choice=0) for n in range(16)]


async def _shortened(*needed: int) -> tuple[list[int], int]:
    runs = 0

    async def fails(faults: list[Fault]) -> bool:
        nonlocal runs
        runs += 1
        return set(needed) <= {fault.number for fault in faults}

    return [fault.number for fault in await shortened(_FAULTS, fails)], runs


async def test_the_one_fault_that_matters_is_left() -> None:
    left, runs = await _shortened(11)
    assert left == [11]
    assert runs < len(_FAULTS)


async def test_faults_that_matter_together_are_left_in_their_order() -> None:
    assert (await _shortened(2, 9, 10))[0] == [2, 9, 10]


async def test_a_failure_that_needs_no_fault_is_left_with_none() -> None:
    assert (await _shortened())[0] == []
