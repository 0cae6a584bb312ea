"""The tasks of this process, which runs and so waits for no terminal."""

import os

from controller_client.terminal_state.kernel.occupation import activity_of
from controller_client.terminal_state.kernel.process_table import ObservedProcess
from controller_client.terminal_state.kernel.waiter import How, Waiter, inspect


def test_a_running_process_waits_for_nothing() -> None:
    process = ObservedProcess(os.getpid())
    process.refresh()
    found = inspect(process, (0, 0), 0)
    assert found.waiters == []
    assert found.masters == []
    assert activity_of(process).endswith(f"[{os.getpid()}] running") or "[" in activity_of(process)
    process.close()


def test_waiters_are_described_for_people() -> None:
    assert Waiter(How.READ, "cat", 12).describe() == "cat[12] read"
    assert (
        Waiter(How.POLL, "vim", 12, timeout_seconds=4.0).describe() == "vim[12] poll with a timeout"
    )
    assert Waiter(How.READ_LOCK, "a process").describe() == "a process read_lock"


def test_plain_reads_are_the_best_evidence() -> None:
    assert sorted([How.MIXED, How.POLL, How.READ]) == [How.READ, How.POLL, How.MIXED]
