"""The tasks of this process, which runs and so waits for no terminal."""

import os
from pathlib import Path

from controller_client.terminal_state.kernel.occupation import activity_of
from controller_client.terminal_state.kernel.process_table import ObservedProcess
from controller_client.terminal_state.kernel.task import Task
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


def test_the_words_of_a_waiter_are_its_command_line_now() -> None:
    words = Path("/proc/self/cmdline").read_text().rstrip("\0").split("\0")
    task = Task(os.getpid(), os.getpid())
    assert Waiter(How.READ, "python3", os.getpid()).words() == words
    assert Waiter(How.READ, "python3", os.getpid(), task).words() == words
    assert Waiter(How.READ, "python3", os.getpid(), task).words() == words
    task.close()


def test_a_waiter_that_is_gone_has_no_words() -> None:
    assert Waiter(How.READ, "cat", 2**22 + 1).words() == []
    assert Waiter(How.READ, "cat", 2**22 + 1, Task(2**22 + 1, 2**22 + 1)).words() == []
    assert Waiter(How.READ_LOCK, "a process").words() == []


def test_plain_reads_are_the_best_evidence() -> None:
    assert sorted([How.MIXED, How.POLL, How.READ]) == [How.READ, How.POLL, How.MIXED]
