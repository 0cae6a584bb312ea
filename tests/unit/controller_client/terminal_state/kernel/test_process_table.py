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
    group_of,
    orphans_of_group,
)
from controller_client.terminal_state.kernel.task import Task, all_unmoved
from tests.support.waiting import wait_until


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
    return table.is_still([])


def test_a_tree_is_still_unless_a_task_of_it_is_about_to_run() -> None:
    with subprocess.Popen(["cat"], stdin=subprocess.PIPE) as sleeper:
        table = ProcessTable(sleeper.pid)
        wait_until(partial(_is_still_now, table), 10, "the program to sleep")
        # This thread runs while it asks. The call and the counter are those of a task that sleeps.
        assert Task(os.getpid(), threading.get_native_id()).is_runnable()
        with mock.patch.object(Task, "is_runnable", return_value=True):
            assert table.is_unmoved()
            assert not table.is_still([])
            # What was seen asleep and has not run need not be asked.
            assert table.is_still(list(table.tasks()))
        assert table.is_still([])
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
