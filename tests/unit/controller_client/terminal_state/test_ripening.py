"""The time for which a requirement is met, and the work of its waiter meanwhile."""

import pytest

from controller_client.terminal_state.decision import Requirement
from controller_client.terminal_state.kernel.task import Task
from controller_client.terminal_state.kernel.waiter import How, Waiter
from controller_client.terminal_state.ripening import Ripening


def _needed(seconds: float, pid: int = 1, counter: bytes = b"0 0 1\n") -> Requirement:
    task = Task(pid, pid)
    task.counter = counter
    return Requirement(Waiter(How.POLL, "program", pid, task), "kernel+quiet", seconds)


def test_a_requirement_has_to_be_met_without_a_break() -> None:
    ripening = Ripening()
    assert ripening.seconds_left(_needed(0.25), now=10.0, quiet=5.0) == 0.25
    assert ripening.seconds_left(_needed(0.25), now=10.1, quiet=5.1) == pytest.approx(0.15)
    assert ripening.seconds_left(_needed(0.25, pid=2), now=10.2, quiet=5.2) == 0.25
    assert ripening.seconds_left(None, now=10.3, quiet=5.3) == 0.0
    assert ripening.seconds_left(_needed(0.25, pid=2), now=10.4, quiet=5.4) == 0.25
    assert ripening.seconds_left(_needed(0.25, pid=2), now=10.7, quiet=5.7) == 0.0
    ripening.forget()
    assert ripening.seconds_left(_needed(0.25, pid=2), now=10.8, quiet=5.8) == 0.25


@pytest.mark.parametrize(("nanoseconds", "has_worked"), [(10_000_000, False), (90_000_000, True)])
def test_a_waiter_that_used_the_processor_has_worked(nanoseconds: int, has_worked: bool) -> None:
    ripening = Ripening()
    ripening.seconds_left(_needed(0.25, counter=b"5000000000 7 3\n"), now=10.0, quiet=1.0)
    later = _needed(0.25, counter=b"%d 8 90\n" % (5_000_000_000 + nanoseconds))
    assert ripening.has_worked(later.waiter, now=10.5) == has_worked
