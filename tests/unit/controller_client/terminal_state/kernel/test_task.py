"""One thread: its line of ``stat``, and whether it has slept since it last ran."""

import os
import subprocess
import threading
from functools import partial
from unittest import mock

import pytest

from controller_client.terminal_state.kernel.task import Task, parse_status
from tests.support.waiting import wait_until


def test_a_name_may_hold_spaces_and_parentheses() -> None:
    status = parse_status(b"12 (a) (b c) S 1 30 31 34817 32 4194304 0\n")
    assert (status.comm, status.pgrp, status.foreground_pgrp) == ("a) (b c", 30, 32)
    assert status.tty == os.makedev(136, 1)


@pytest.mark.parametrize(
    ("letter", "is_asleep", "is_stopped", "is_live"),
    [
        ("S", True, False, True),
        ("R", False, False, True),
        ("D", False, False, True),
        ("T", True, True, False),
        ("Z", True, False, False),
    ],
)
def test_states_of_a_task(letter: str, is_asleep: bool, is_stopped: bool, is_live: bool) -> None:
    status = parse_status(f"12 (x) {letter} 1 30 31 0 -1 0".encode())
    assert (status.is_asleep, status.is_stopped, status.is_live) == (is_asleep, is_stopped, is_live)


def test_any_other_text_than_a_status_line_is_a_value_error() -> None:
    with pytest.raises(ValueError, match="not found"):
        parse_status(b"")


def _has_slept_now(task: Task) -> bool:
    task.counter = task.read_counter()
    return task.has_slept()


def test_a_task_that_sleeps_is_asked_for_its_state_once() -> None:
    with subprocess.Popen(["cat"], stdin=subprocess.PIPE) as sleeper:
        task = Task(sleeper.pid, sleeper.pid)
        wait_until(partial(_has_slept_now, task), 10, "the program to sleep")
        with mock.patch.object(Task, "status", side_effect=AssertionError):
            assert _has_slept_now(task)
        task.counter = b"another 1 2"
        with mock.patch.object(Task, "status", return_value=parse_status(b"1 (cat) R 1 1 1 0 1")):
            assert not task.has_slept()
        task.close()


def test_a_task_on_a_processor_has_not_slept() -> None:
    here = Task(os.getpid(), threading.get_native_id())
    assert not _has_slept_now(here)
    assert not _has_slept_now(here)
    here.close()


def test_a_task_that_is_gone_has_slept() -> None:
    gone = Task(2**22 + 1, 2**22 + 1)
    assert _has_slept_now(gone)
    gone.close()
