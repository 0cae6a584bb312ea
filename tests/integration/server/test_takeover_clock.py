"""The lifetime of a real session while a person has its keyboard.

It survives the deaths of the server and the daemon, and ends the session in the end.
"""

import subprocess
import sys
import time
from collections.abc import Iterator

import pytest

from tests.support.stack import PROJECT_ROOT, Stack, running_stack
from tests.support.waiting import await_until

# Long enough for a busy machine to start the process of ``_keyboard``.
_LIFETIME_SECONDS = 45.0
_STAND_SECONDS = 30 * 60


@pytest.fixture
def own_stack() -> Iterator[Stack]:
    with running_stack() as started:
        yield started


def _keyboard(stack: Stack, session_id: str) -> subprocess.Popen[str]:
    """A person who has the session's keyboard until this process's standard input is closed."""
    return subprocess.Popen(
        [sys.executable, "manage.py", "take_over", session_id, "--note", "done"],
        cwd=PROJECT_ROOT,
        env=stack.server_environment(),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )


async def test_a_paused_lifetime_stays_paused_when_server_and_daemon_die(own_stack: Stack) -> None:
    stack = own_stack
    async with stack.caller() as caller:
        session_id = (
            await caller.start("cat", lifetime_seconds=_LIFETIME_SECONDS, wait_seconds=0)
        ).session_id
    await await_until(
        lambda: stack.database.state(session_id) == "RUNNING", 90, "the program to run"
    )
    keyboard = _keyboard(stack, session_id)
    assert keyboard.stdout is not None
    assert "Its lifetime does not run while you have the keyboard" in keyboard.stdout.readline()
    (left,) = stack.database.session(session_id, "pause_left_seconds")
    assert 0 < left <= _STAND_SECONDS
    stood_from = time.monotonic()
    stack.kill_server()
    stack.kill_daemon()
    stack.start_server()
    stack.start_daemon()
    # The holder outlives both, and reports its clock to the new daemon.
    await await_until(
        lambda: stack.database.session(session_id, "pause_left_seconds")[0] < left,
        90,
        "the clock to be told again",
    )
    assert stack.database.session(session_id, "paused_at") != (None,)
    stood_seconds = time.monotonic() - stood_from
    assert keyboard.communicate(timeout=90)[0] is not None
    await await_until(
        lambda: stack.database.session(session_id, "paused_at") == (None,), 90, "the clock to go on"
    )
    assert (
        stack.database.session(session_id, "pause_left_seconds")[0]
        <= _STAND_SECONDS - stood_seconds
    )
    await await_until(
        lambda: stack.database.state(session_id) == "TIMED_OUT",
        _LIFETIME_SECONDS + 90,
        "the lifetime to end the session",
    )
    assert (
        stack.database.session(session_id, "duration_ms")[0]
        >= (_LIFETIME_SECONDS + stood_seconds) * 1000
    )
