"""A snapshot decides whether a claim may be made, and after which silence."""

import dataclasses
import os
from typing import Any

import pytest

from controller_client.terminal_state.decision import Context, requirement
from controller_client.terminal_state.kernel.occupation import Company, Occupation
from controller_client.terminal_state.kernel.process_table import ObservedProcess
from controller_client.terminal_state.kernel.snapshot import Snapshot
from controller_client.terminal_state.kernel.task import Task
from controller_client.terminal_state.kernel.terminal_device import Flags
from controller_client.terminal_state.kernel.waiter import How, Waiter
from controller_client.terminal_state.prompt.text import Likeness

LINES = Flags(is_echoing=True, is_canonical=True, is_polling=False)
KEYS = Flags(is_echoing=False, is_canonical=False, is_polling=False)
TASK = Task(os.getpid(), os.getpid())
THREAD = Task(os.getpid(), 0)
READER = Waiter(How.READ, "cat", 12, TASK)
POLLER = Waiter(How.POLL, "vim", 12, TASK)
MIXED = Waiter(How.MIXED, "ssh", 12, TASK)


def found(*waiters: Waiter, **changes: Any) -> Snapshot:
    return Snapshot(**{"flags": LINES, "waiters": list(waiters), **changes})


def needed(
    snapshot: Snapshot,
    likeness: Likeness = Likeness.NONE,
    *,
    after_escape: bool = False,
    editing: bool = False,
    answered: bool = True,
    line: Likeness | None = None,
) -> tuple[str, float] | None:
    line = likeness if line is None else line
    context = Context(lambda: likeness, lambda: line, after_escape, editing, answered)
    result = requirement(snapshot, context)
    return result and (result.evidence, result.settle_seconds)


@pytest.mark.parametrize("waiter", [READER, POLLER])
def test_a_task_that_sleeps_on_the_terminal_alone_waits_at_once(waiter: Waiter) -> None:
    assert needed(found(waiter)) == ("kernel", 0.0)


def test_nobody_waits_while_input_is_unread() -> None:
    assert needed(found(READER, has_unread=True)) is None


def test_nobody_waits_while_a_relay_has_output_to_pass_on() -> None:
    assert needed(found(READER, is_relaying=True)) is None


def test_nobody_waits_while_a_relay_runs() -> None:
    assert needed(found(READER, inner_device=1, is_asleep=False)) is None


def test_text_alone_is_no_evidence_where_the_kernel_can_be_asked() -> None:
    assert needed(found(), Likeness.PROMPT) is None


def test_a_timeout_or_other_work_needs_silence() -> None:
    assert needed(found(dataclasses.replace(POLLER, timeout_seconds=0.1))) == ("kernel+quiet", 0.25)
    assert needed(found(READER, is_busy=True)) == ("kernel+quiet", 0.25)
    assert needed(
        found(READER, flags=Flags(is_echoing=False, is_canonical=False, is_polling=True))
    ) == ("kernel+quiet", 0.25)


def test_a_short_timeout_has_to_run_out_unless_the_program_is_at_a_prompt() -> None:
    shortly = found(dataclasses.replace(POLLER, timeout_seconds=0.5))
    assert needed(shortly) == ("kernel+quiet", 0.6)
    assert needed(shortly, Likeness.PROMPT) == ("kernel+quiet", 0.25)
    # A line editor shows the matching bracket, and has the rest of the line already.
    assert needed(shortly, Likeness.PROMPT, line=Likeness.TEXT) == ("kernel+quiet", 0.6)


def test_a_long_timeout_on_the_keyboard_alone_needs_little_silence() -> None:
    assert needed(found(dataclasses.replace(POLLER, timeout_seconds=4.0))) == ("kernel+quiet", 0.02)
    assert needed(found(dataclasses.replace(POLLER, timeout_seconds=4.0), is_busy=True)) == (
        "kernel+quiet",
        0.25,
    )


def test_the_best_waiter_counts() -> None:
    assert needed(found(MIXED, READER)) == ("kernel", 0.0)


@pytest.mark.parametrize(
    ("likeness", "expected"),
    [
        (Likeness.NONE, None),
        (Likeness.TEXT, ("heuristic", 1.5)),
        (Likeness.PROMPT, ("kernel+quiet", 0.25)),
    ],
)
def test_a_shared_wait_is_decided_by_the_text(
    likeness: Likeness, expected: tuple[str, float] | None
) -> None:
    assert needed(found(MIXED), likeness) == expected
    assert needed(found(Waiter(How.WOKEN, "bash", 12, TASK)), likeness) == expected


def test_a_prompt_of_a_task_that_listens_to_strangers_is_a_guess() -> None:
    foreign = dataclasses.replace(MIXED, is_foreign=True)
    assert needed(found(foreign), Likeness.PROMPT) == ("heuristic", 0.25)
    shell = dataclasses.replace(foreign, comm="fish")
    assert needed(found(shell), Likeness.PROMPT) == ("heuristic", 0.25)
    assert needed(found(shell, flags=KEYS), Likeness.PROMPT) == ("kernel+quiet", 0.02)


@pytest.mark.parametrize(
    "company",
    [
        Company(threads=Occupation.WORKING),
        Company(first_thread=Occupation.PAUSING),
        Company(children=Occupation.PAUSING),
    ],
)
def test_beside_work_only_a_question_counts_and_after_a_long_silence(company: Company) -> None:
    waiter = dataclasses.replace(READER, task=THREAD, is_one_of_several=True, company=company)
    assert needed(found(waiter, is_busy=True)) is None
    assert needed(found(waiter, is_busy=True), Likeness.TEXT) is None
    assert needed(found(waiter, is_busy=True), Likeness.PROMPT) == ("heuristic", 1.5)


def test_a_first_thread_that_reads_is_a_guess_beside_work() -> None:
    company = Company(threads=Occupation.RUNNING)
    waiter = dataclasses.replace(READER, is_one_of_several=True, company=company)
    assert needed(found(waiter, is_busy=True)) == ("heuristic", 1.5)
    relay = dataclasses.replace(waiter, listens_elsewhere=True)
    assert needed(found(relay, is_busy=True)) is None


def test_a_parent_that_computes_is_work() -> None:
    waiter = dataclasses.replace(POLLER, company=Company(parents=Occupation.RUNNING))
    assert needed(found(waiter, is_busy=True)) is None


def test_a_lone_reader_waits_whatever_it_has_started() -> None:
    waiter = dataclasses.replace(READER, company=Company(children=Occupation.RUNNING))
    assert needed(found(waiter, is_busy=True)) == ("kernel+quiet", 0.25)


def test_housekeeping_is_work_only_for_a_task_that_listens_to_it() -> None:
    waiter = dataclasses.replace(
        POLLER, is_one_of_several=True, company=Company(threads=Occupation.PAUSING)
    )
    assert needed(found(waiter, is_busy=True)) == ("kernel+quiet", 0.25)
    listening = dataclasses.replace(waiter, listens_elsewhere=True)
    assert needed(found(listening, is_busy=True)) is None


def test_a_shell_at_its_line_waits_for_no_job() -> None:
    company = Company(children=Occupation.RUNNING, has_detached_child=True)
    shell = dataclasses.replace(POLLER, comm="fish", is_one_of_several=True, company=company)
    assert needed(found(shell)) is None
    assert needed(found(shell, flags=KEYS)) == ("kernel", 0.0)


def test_a_client_of_a_silent_peer_that_takes_lines_is_a_late_guess() -> None:
    foreign = dataclasses.replace(MIXED, is_foreign=True)
    assert needed(found(foreign)) == ("heuristic", 10.0)
    assert needed(found(foreign, flags=KEYS)) is None
    assert needed(found(MIXED)) is None


def test_a_multiplexer_waits_if_all_behind_it_do() -> None:
    proven = dataclasses.replace(MIXED, is_proven=True, behind=[READER])
    assert needed(found(proven)) == ("kernel", 0.02)
    assert needed(found(proven), after_escape=True) == ("kernel", 1.2)
    assert needed(found(proven, has_workers=True)) == ("kernel+quiet", 0.25)
    company = Company(first_thread=Occupation.RUNNING)
    beside = dataclasses.replace(READER, is_one_of_several=True, company=company)
    assert needed(found(dataclasses.replace(proven, behind=[beside]))) is None


def test_an_event_loop_on_its_own_descriptors_waits_at_once() -> None:
    assert needed(found(dataclasses.replace(POLLER, is_loop=True))) == ("kernel", 0.0)


def test_an_event_loop_with_work_under_way_is_decided_by_the_text() -> None:
    at_work = found(dataclasses.replace(POLLER, is_loop=True), has_workers=True)
    assert needed(at_work) is None
    assert needed(at_work, Likeness.PROMPT) == ("kernel+quiet", 0.25)
    assert needed(at_work, Likeness.PROMPT, editing=True) == ("kernel+quiet", 0.25)


def test_a_far_timer_or_a_line_editor_shortens_the_silence_needed() -> None:
    soon = dataclasses.replace(MIXED, is_loop=True, timeout_seconds=0.5)
    far = dataclasses.replace(soon, timeout_seconds=8.0)
    assert needed(found(far)) is None
    assert needed(found(far), Likeness.PROMPT) == ("kernel+quiet", 0.02)
    assert needed(found(soon), Likeness.PROMPT) == ("kernel+quiet", 0.25)
    assert needed(found(soon), Likeness.PROMPT, editing=True) == ("kernel+quiet", 0.02)
    shared = dataclasses.replace(far, is_shared=True)
    assert needed(found(shared), Likeness.PROMPT, editing=True) == ("kernel+quiet", 0.25)


def test_a_timer_may_be_the_work_on_an_input_that_is_not_shown() -> None:
    soon = dataclasses.replace(MIXED, is_loop=True, timeout_seconds=0.3)
    brief = dataclasses.replace(soon, timeout_seconds=0.1)
    far = dataclasses.replace(soon, timeout_seconds=8.0)
    endless = dataclasses.replace(soon, timeout_seconds=None, is_shared=True)
    silently = {
        each.timeout_seconds: needed(found(each), Likeness.PROMPT, answered=False)
        for each in (soon, brief, far, endless)
    }
    assert silently == {
        0.3: ("kernel+quiet", 0.4),
        0.1: ("kernel+quiet", 0.25),
        8.0: ("heuristic", 1.5),
        None: ("kernel+quiet", 0.25),
    }
    shortly = dataclasses.replace(POLLER, timeout_seconds=0.5)
    assert needed(found(shortly), Likeness.PROMPT, answered=False) == ("kernel+quiet", 0.6)


def test_a_shared_wait_with_a_password_prompts_modes_is_a_prompt() -> None:
    modes = Flags(is_echoing=False, is_canonical=True, is_polling=False)
    assert needed(found(MIXED, flags=modes)) == ("kernel+quiet", 0.25)


@pytest.mark.parametrize(
    ("likeness", "expected"),
    [
        (Likeness.NONE, None),
        (Likeness.TEXT, ("heuristic", 1.5)),
        (Likeness.PROMPT, ("heuristic", 0.3)),
    ],
)
def test_a_program_out_of_reach_is_judged_by_its_text(
    likeness: Likeness, expected: tuple[str, float] | None
) -> None:
    assert needed(found(is_unreachable=True, flags=None), likeness) == expected


def test_text_does_not_count_while_a_program_runs() -> None:
    assert needed(found(is_unreachable=True, is_asleep=False), Likeness.PROMPT) is None


def test_a_reader_without_counters_must_settle() -> None:
    outsider = Waiter(How.READ_LOCK, "a process")
    assert needed(found(outsider)) == ("kernel", 0.008)
    assert needed(found(outsider, blind=[ObservedProcess(os.getpid())])) == ("kernel", 0.0)


def test_a_relay_that_may_not_be_inspected_must_settle() -> None:
    assert needed(found(READER, inner_device=1, is_relay_opaque=True)) == ("kernel+quiet", 0.02)


def test_a_lone_escape_is_given_time_where_a_program_may_hold_it_back() -> None:
    assert needed(found(dataclasses.replace(POLLER, timeout_seconds=1.0)), after_escape=True) == (
        "kernel+quiet",
        1.2,
    )
    assert needed(found(dataclasses.replace(POLLER, timeout_seconds=4.0)), after_escape=True) == (
        "kernel+quiet",
        0.02,
    )
    assert needed(found(READER), after_escape=True) == ("kernel", 0.0)
    assert needed(found(MIXED), Likeness.PROMPT, after_escape=True) == ("kernel+quiet", 1.2)
