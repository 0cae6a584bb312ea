"""The steps of an orderly end, by the clock.

The signals go to numbers that no process has; real trees are in the integration tests.
"""

import errno
import os
import resource
import select
import signal
import subprocess

from controller_client.system.adoption import Left
from controller_client.system.process_tree import ProcessInfo, read_process
from controller_client.system.termination import (
    KILL_SECONDS,
    Termination,
    kill_leftovers,
    send_signal,
)
from tests.support.descriptors import spare_descriptors

NOBODY = ProcessInfo(pid=2**22 + 1, parent_pid=1, session=0, state="S", started=1, name="nobody")


def test_nothing_left_is_the_end() -> None:
    termination = Termination(list, lambda: None, grace_seconds=5, hang_up_after_seconds=0.2)
    termination.begin(signal.SIGTERM, 100.0)
    assert (termination.is_finished, termination.survivors) == (True, [])


def test_survivors_are_polled_less_often_then_killed_then_reported() -> None:
    termination = Termination(
        lambda: [NOBODY], lambda: None, grace_seconds=5, hang_up_after_seconds=0.2
    )
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
    impostor = ProcessInfo(
        pid=os.getpid(), parent_pid=1, session=0, state="S", started=1, name="other"
    )
    assert send_signal([impostor], signal.SIGKILL) == ([], [])


def test_a_session_that_left_nothing_needs_no_killing() -> None:
    assert kill_leftovers("no-such-session") == []


def test_what_forked_and_ended_before_the_look_is_looked_for_again() -> None:
    """NOBODY was named and has ended: its child is named at the next look only."""
    with subprocess.Popen(["sleep", "100"]) as child:
        found = read_process(child.pid)
        assert found is not None
        looks = iter([[NOBODY], [NOBODY, found]])
        named = (Left(look, is_all=True) for look in looks)
        last = Left([NOBODY], is_all=True)
        assert kill_leftovers("no-such-session", lambda: next(named, last)) == []
        assert child.wait(10) == -signal.SIGKILL


def test_what_is_not_settled_is_looked_for_again() -> None:
    """The parent of the child ended unseen: nobody is named, and that is not all."""
    with subprocess.Popen(["sleep", "100"]) as child:
        found = read_process(child.pid)
        assert found is not None
        unsettled = Left([], is_all=False, is_settled=False)
        looks = iter([unsettled, unsettled, Left([found], is_all=True)])
        assert kill_leftovers("one", lambda: next(looks, Left([], is_all=True))) == []
        assert child.wait(10) == -signal.SIGKILL


def test_what_is_never_settled_is_looked_for_no_longer_than_others() -> None:
    looks: list[int] = []

    def known() -> Left:
        looks.append(1)
        return Left([], is_all=False, is_settled=False)

    assert kill_leftovers("no-such-session", known, timeout_seconds=0.01) == []
    assert len(looks) > 5


def test_who_cannot_be_looked_at_is_neither_signalled_nor_gone() -> None:
    with spare_descriptors(0):
        assert send_signal([NOBODY], signal.SIGKILL) == ([], [NOBODY])
    assert send_signal([NOBODY], signal.SIGKILL) == ([], [])


def test_an_end_that_nobody_can_see_is_not_reached() -> None:
    sight: list[list[ProcessInfo] | None] = [None]
    unseen: list[int] = []

    def members() -> list[ProcessInfo]:
        if sight[0] is None:
            raise OSError(errno.EMFILE, "Too many open files")
        return sight[0]

    termination = Termination(
        members,
        lambda: None,
        grace_seconds=1,
        hang_up_after_seconds=None,
        signal_unseen=unseen.append,
    )
    termination.begin(signal.SIGTERM, 100.0)
    for now in (100.5, 101.5, 150.0):
        termination.advance(now)
        assert now < termination.next_look_at <= now + 0.1
    assert not termination.is_finished
    assert unseen == [signal.SIGTERM, signal.SIGKILL, signal.SIGKILL], (
        "what needs no look is told all the same"
    )
    sight[0] = [NOBODY]
    termination.advance(150.1)
    assert not termination.is_finished, "it was killed a moment ago"
    termination.advance(150.1 + KILL_SECONDS)
    assert termination.survivors == [NOBODY.label]


def test_what_was_asked_unseen_is_not_asked_again_once_it_is_seen() -> None:
    child = subprocess.Popen(
        ["sh", "-c", "trap 'echo told' USR1; echo ready; while :; do sleep 0.05; done"],
        stdout=subprocess.PIPE,
    )
    assert child.stdout is not None
    sight: list[ProcessInfo] = []

    def members() -> list[ProcessInfo]:
        if not sight:
            raise OSError(errno.EMFILE, "Too many open files")
        return sight

    try:
        assert child.stdout.readline() == b"ready\n"
        process = read_process(child.pid)
        assert process is not None
        termination = Termination(
            members,
            lambda: None,
            grace_seconds=99,
            hang_up_after_seconds=None,
            signal_unseen=child.send_signal,
            is_known_unseen=lambda seen: seen.pid == child.pid,
        )
        termination.begin(signal.SIGUSR1, 100.0)
        assert child.stdout.readline() == b"told\n"
        sight.append(process)
        termination.advance(100.1)
        assert not select.select([child.stdout], (), (), 0.3)[0]
    finally:
        child.kill()
        child.wait()
        child.stdout.close()


def test_leftovers_are_waited_for_by_a_process_with_many_descriptors() -> None:
    """Those that a wait opens have numbers that select cannot wait for."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, min(hard, 4096)), hard))
    low = [os.open("/dev/null", os.O_RDONLY)]
    try:
        while low[-1] < 1024:
            low.append(os.dup(low[0]))
        with subprocess.Popen(["sleep", "100"]) as child:
            found = read_process(child.pid)
            assert found is not None
            known = Left([found], is_all=True)
            assert kill_leftovers("no-such-session", lambda: known) == []
            assert child.wait(10) == -signal.SIGKILL
    finally:
        for descriptor in low:
            os.close(descriptor)
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def test_the_first_signal_is_sent_once_to_each_when_they_can_be_looked_at() -> None:
    child = subprocess.Popen(
        ["sh", "-c", "trap 'echo told' USR1; echo ready; while :; do sleep 0.05; done"],
        stdout=subprocess.PIPE,
    )
    assert child.stdout is not None
    try:
        assert child.stdout.readline() == b"ready\n"
        process = read_process(child.pid)
        assert process is not None
        termination = Termination(
            lambda: [process], lambda: None, grace_seconds=99, hang_up_after_seconds=None
        )
        with spare_descriptors(0):
            termination.begin(signal.SIGUSR1, 100.0)
        for now in (100.1, 100.2, 100.3):
            termination.advance(now)
        assert child.stdout.readline() == b"told\n"
        assert not select.select([child.stdout], (), (), 0.3)[0]
    finally:
        child.kill()
        child.wait()
        child.stdout.close()
