"""What a program leaves when it ends, by the clock: named if it stays, and not on its way out."""

import os
import signal
import subprocess
from collections.abc import Iterator

import pytest

from controller_client.holder import session_end
from controller_client.holder.session_end import (
    LOOK_AGAIN_SECONDS,
    LOOKS_BEFORE_NAMING,
    SessionEnd,
)
from controller_client.protocol.values import NOTE_LEFT_RUNNING
from controller_client.system.boot import lifetime_clock

EXITS_AT = 100.0


@pytest.fixture
def left() -> Iterator[subprocess.Popen[bytes]]:
    """A process that a program left to its holder."""
    with subprocess.Popen(["sleep", "100"]) as process:
        yield process
        process.kill()


@pytest.fixture
def end(monkeypatch: pytest.MonkeyPatch) -> Iterator[SessionEnd]:
    """The end of a session whose program has exited; this process is its holder."""
    with subprocess.Popen(["true"]) as leader:
        os.waitid(os.P_PID, leader.pid, os.WEXITED | os.WNOWAIT)
        _has_children(monkeypatch, leader.pid)
        end = SessionEnd(
            "s",
            leader.pid,
            io_mode="pty",
            lifetime_seconds=0,
            hang_up=lambda: None,
            group=None,
            lives_from=lifetime_clock(),
            now=EXITS_AT,
        )
        end.reap(EXITS_AT)
        yield end
        end.release()


def _has_children(monkeypatch: pytest.MonkeyPatch, *pids: int) -> None:
    monkeypatch.setattr(session_end, "own_children", lambda: list(pids))


def _look(end: SessionEnd, now: float, *, is_output_open: bool = False) -> None:
    end.advance(now, is_output_open=is_output_open, is_paused=False)


def _what_is_left(end: SessionEnd) -> tuple[list[str], list[str]]:
    done = end.done([], EXITS_AT)
    return done.survivors, done.notes


def test_an_end_that_leaves_nothing_is_over_at_once(end: SessionEnd) -> None:
    _look(end, EXITS_AT)
    assert (end.is_over, _what_is_left(end)) == (True, ([], []))


def test_what_is_on_its_way_out_is_not_named_and_its_end_is_the_end(
    end: SessionEnd, left: subprocess.Popen[bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    _has_children(monkeypatch, left.pid)
    _look(end, EXITS_AT)
    assert not end.is_over
    left.send_signal(signal.SIGKILL)
    os.waitid(os.P_PID, left.pid, os.WEXITED | os.WNOWAIT)
    # It has ended, long before the next look is due.
    end.reap(EXITS_AT)
    _look(end, EXITS_AT)
    assert (end.is_over, _what_is_left(end)) == (True, ([], []))


@pytest.mark.parametrize("is_opened_again", [False, True])
def test_what_stays_is_named_after_some_looks_whoever_wakes_the_holder(
    end: SessionEnd,
    left: subprocess.Popen[bytes],
    monkeypatch: pytest.MonkeyPatch,
    *,
    is_opened_again: bool,
) -> None:
    _has_children(monkeypatch, left.pid)
    now, looks = EXITS_AT, 0
    _look(end, now)
    while not end.is_over:
        due = end.deadline()
        assert due is not None
        assert due > now
        _look(end, now, is_output_open=is_opened_again)
        now, looks = due, looks + 1
        _look(end, now, is_output_open=is_opened_again)
    assert looks == LOOKS_BEFORE_NAMING
    assert now == pytest.approx(EXITS_AT + LOOKS_BEFORE_NAMING * LOOK_AGAIN_SECONDS)
    assert _what_is_left(end) == ([f"sleep[{left.pid}]"], [NOTE_LEFT_RUNNING])
