"""The process tree, with this process as its root."""

import os
import subprocess
import threading
from collections.abc import Iterator
from functools import partial
from unittest import mock

import pytest

from controller_client.terminal_state.kernel.process_table import (
    ObservedProcess,
    ProcessTable,
    Task,
    all_unmoved,
    group_of,
    orphans_of_group,
    parse_status,
)
from tests.support.waiting import wait_until


def test_a_name_may_hold_spaces_and_parentheses() -> None:
    status = parse_status(b"12 (a) (b c) S 1 30 31 34817 32 4194304 0\n")
    assert (status.comm, status.pgrp, status.session, status.foreground_pgrp) == (
        "a) (b c",
        30,
        31,
        32,
    )
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


@pytest.fixture
def here() -> Iterator[ProcessTable]:
    table = ProcessTable(os.getpid())
    table.refresh()
    yield table
    table.close()


def test_the_root_is_in_the_tree_with_its_group(here: ProcessTable) -> None:
    assert os.getpid() in {process.pid for process in here.group(os.getpgrp())}


def test_the_counter_of_a_task_that_runs_changes(here: ProcessTable) -> None:
    assert any(task.counter for task in here.tasks())
    while here.is_unmoved():  # the clock tick that accounts for us is on its way
        pass
    assert not here.is_unmoved()


def _is_still_now(table: ProcessTable) -> bool:
    table.refresh()
    return table.is_still()


def test_a_tree_is_still_unless_a_task_of_it_is_about_to_run() -> None:
    with subprocess.Popen(["cat"], stdin=subprocess.PIPE) as sleeper:
        table = ProcessTable(sleeper.pid)
        wait_until(partial(_is_still_now, table), 10, "the program to sleep")
        # This thread runs while it asks. The call and the counter are those of a task that sleeps.
        assert Task(os.getpid(), threading.get_native_id()).is_runnable()
        with mock.patch.object(Task, "is_runnable", return_value=True):
            assert table.is_unmoved()
            assert not table.is_still()
        assert table.is_still()
        table.close()


def test_a_process_that_is_gone_leaves_the_tree() -> None:
    table = ProcessTable(2**22 + 1)
    table.refresh()
    assert table.processes == []
    assert not table.is_unmoved()
    assert table.read_counters() == {}


def test_counters_of_a_task_that_is_gone_are_empty() -> None:
    process = ObservedProcess(2**22 + 1)
    assert process.tasks[0].read_counter() == b""
    assert process.tasks[0].children() == []
    assert all_unmoved(process.tasks)


def test_groups_are_found_by_their_leader() -> None:
    assert group_of(os.getpid()) == os.getpgrp()
    assert os.getpgrp() in {group_of(pid) for pid in orphans_of_group(os.getpgrp())}
    assert group_of(2**22 + 1) == 0
