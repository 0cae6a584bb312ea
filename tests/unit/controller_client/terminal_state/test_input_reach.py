"""An input counts as taken once a task has run, or after a time without one that ran."""

import os
from collections.abc import Iterator

import pytest

from controller_client.terminal_state.input_reach import NOT_WOKEN_SECONDS, InputReach
from controller_client.terminal_state.kernel.process_table import ProcessTable

NOW = 0.0


@pytest.fixture
def table() -> Iterator[ProcessTable]:
    """Return the processes below this one, whose counters are known."""
    created = ProcessTable(os.getpid())
    created.refresh()
    yield created
    created.close()


def test_without_an_event_nothing_has_to_run(table: ProcessTable) -> None:
    assert InputReach().has_reached(table.tasks(), NOW)


def test_a_task_must_run_after_an_event_that_wakes_readers(table: ProcessTable) -> None:
    (task, *_) = table.tasks()
    reach = InputReach()
    reach.before_event(NOW, table, wakes_readers=True)
    task.counter = reach._before[task.tid] if reach._before else b""
    assert not reach.has_reached([task], NOW)
    task.counter = b"1 2 3"
    assert reach.has_reached([task], NOW)


def test_an_event_that_wakes_no_reader_needs_no_task_that_ran(table: ProcessTable) -> None:
    reach = InputReach()
    reach.before_event(NOW, table, wakes_readers=False)
    assert reach.has_reached(table.tasks(), NOW)


def test_after_a_while_an_event_counts_as_one_that_wakes_no_task() -> None:
    reach = InputReach()
    reach.before_event(NOW, ProcessTable(os.getpid()), wakes_readers=True)
    assert not reach.has_reached([], NOW)
    assert reach.has_reached([], NOW + NOT_WOKEN_SECONDS)


def test_counters_that_cannot_be_read_prove_nothing(
    table: ProcessTable, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail() -> None:
        raise OSError("nothing is left to look with")

    monkeypatch.setattr(table, "read_counters", fail)
    reach = InputReach()
    reach.before_event(NOW, table, wakes_readers=True)
    assert not reach.has_reached(table.tasks(), NOW)
    assert reach.has_reached(table.tasks(), NOW + NOT_WOKEN_SECONDS)
