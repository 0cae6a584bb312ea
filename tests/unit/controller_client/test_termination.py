"""The steps of an orderly end, by the clock. The signals go to numbers that no process has; real trees are in the integration tests."""

import signal

from controller_client.process_tree import ProcessInfo
from controller_client.termination import KILL_SECONDS, Termination, kill_leftovers, send_signal

NOBODY = ProcessInfo(pid=2**22 + 1, parent_pid=1, session=0, state="S", started=1, name="nobody")


def test_nothing_left_is_the_end() -> None:
    termination = Termination(list, lambda: None, grace_seconds=5, hang_up_after_seconds=0.2)
    termination.begin(signal.SIGTERM, 100.0)
    assert (termination.is_finished, termination.survivors) == (True, [])


def test_what_stays_is_looked_at_ever_more_seldom_killed_after_the_grace_and_named_in_the_end() -> None:
    termination = Termination(lambda: [NOBODY], lambda: None, grace_seconds=5, hang_up_after_seconds=0.2)
    termination.begin(signal.SIGTERM, 100.0)
    now, looks = 100.0, []
    while not termination.is_finished:
        looks.append(termination.next_look_at - now)
        now = termination.next_look_at
        termination.advance(now)
    assert looks[0] < looks[5]
    assert 105.0 + KILL_SECONDS <= now < 105.2 + KILL_SECONDS
    assert termination.survivors == ["nobody[4194305]"]


def test_a_process_that_came_later_under_the_same_number_is_left_alone() -> None:
    import os

    impostor = ProcessInfo(pid=os.getpid(), parent_pid=1, session=0, state="S", started=1, name="other")
    assert send_signal([impostor], signal.SIGKILL) == []


def test_a_session_that_left_nothing_needs_no_killing() -> None:
    assert kill_leftovers("no-such-session") == []
