"""Processes of this test that rest, pause, work and run, seen from their parent."""

import os
import select
import signal
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest

from controller_client.terminal_state.kernel.occupation import (
    Company,
    Occupation,
    Work,
    company_of,
    occupation_of,
)
from controller_client.terminal_state.kernel.process_table import ProcessTable
from controller_client.terminal_state.kernel.task import Task
from tests.support.waiting import wait_until


@contextmanager
def forked(act: Callable[[], object]) -> Iterator[int]:
    """Yield the pid of a fork that does something until the end of the test."""
    pid = os.fork()
    if pid == 0:
        act()
        os._exit(0)
    try:
        yield pid
    finally:
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)


def compute() -> None:
    while True:
        pass


def test_a_task_that_is_gone_rests() -> None:
    assert occupation_of(Task(2**22 + 1, 2**22 + 1)) is Occupation.RESTING


@pytest.mark.parametrize(
    ("act", "expected"),
    [
        (signal.pause, Occupation.RESTING),
        (lambda: signal.sigtimedwait([signal.SIGUSR1], 60), Occupation.PAUSING),
        (lambda: select.select([], [], [], 60), Occupation.PAUSING),
        (lambda: select.select([os.eventfd(0)], [], [], 60), Occupation.WORKING),
        (lambda: select.select([os.eventfd(0)], [], []), Occupation.RESTING),
        (compute, Occupation.RUNNING),
    ],
)
def test_the_occupation_of_a_task(act: Callable[[], object], expected: Occupation) -> None:
    with forked(act) as pid:
        task = Task(pid, pid)
        wait_until(lambda: occupation_of(task) is expected, 10, f"the fork to be {expected.name}")
        task.close()


def test_a_task_that_waits_for_its_tree_rests() -> None:
    ours, theirs = socket.socketpair()
    with ours, theirs, forked(lambda: (ours.close(), select.select([theirs], [], []))) as pid:
        theirs.close()
        task = Task(pid, pid)
        wait_until(lambda: b"running" not in task.syscall(), 10, "the fork to sleep")
        assert occupation_of(task) is Occupation.WORKING
        assert occupation_of(task, [os.getpid()]) is Occupation.RESTING
        task.close()


def test_work_is_told_by_its_place_around_a_waiter() -> None:
    with forked(signal.pause) as child:
        table = ProcessTable(os.getpid())
        table.refresh()
        work = [Work(process, process.tasks[0], Occupation.RUNNING) for process in table.processes]
        assert company_of(os.getpid(), [], table) == Company()
        assert company_of(child, work, table).parents is Occupation.RUNNING
        assert company_of(os.getpid(), work, table).children is Occupation.RUNNING
        assert company_of(os.getpid(), work, table).first_thread is Occupation.RUNNING
        table.close()
