"""kill -9 of the server, the daemon and the holder while a program prints."""

import hashlib
import shlex
import signal
import sys
from pathlib import Path

import pytest

from tests.support.hosts import oracle
from tests.support.processes import is_running, send_signal
from tests.support.stack import Stack
from tests.support.waiting import await_until, wait_until

pytestmark = pytest.mark.fault

_PYTHON = "/usr/bin/python3" if Path("/usr/bin/python3").exists() else sys.executable


def oracle_command(lines: int, interval_seconds: float, spawn_log: Path) -> str:
    """The command line of the oracle program."""
    return shlex.join([_PYTHON, oracle.__file__, str(lines), str(interval_seconds), str(spawn_log)])


def _committed(stack: Stack, session_id: str) -> int:
    return int(stack.database.session(session_id, "stdout_next_offset")[0])


def _wait_for_more(stack: Stack, session_id: str) -> None:
    seen = _committed(stack, session_id)
    # On a slow machine the program may have ended meanwhile, so that no more output comes.
    wait_until(
        lambda: _committed(stack, session_id) > seen or _has_ended(stack, session_id),
        90,
        "more output to be committed",
    )


def _has_ended(stack: Stack, session_id: str) -> bool:
    return stack.database.session(session_id, "ended_at")[0] is not None


def _restart_server(stack: Stack) -> None:
    epoch = stack.database.controller_epoch(stack.provisioned.controller)
    stack.kill_server()
    stack.start_server()
    wait_until(
        lambda: stack.database.controller_epoch(stack.provisioned.controller) > epoch,
        90,
        "the daemon to come back",
    )


async def assert_whole(stack: Stack, session_id: str, lines: int, spawn_log: Path) -> None:
    """Check that the transcript is complete, in order and without duplicates.

    The digest agrees, and the program was started once.
    """
    transcript = stack.database.transcript(session_id)
    expected = oracle.expected_output(lines)
    assert hashlib.sha256(transcript).hexdigest() == hashlib.sha256(expected).hexdigest()
    assert stack.database.session(session_id, "exit_code") == (0,)
    await stack.database.await_verified(session_id)
    assert oracle.times_started(spawn_log) == 1


@pytest.mark.requirement("S4.R1.3", "S4.R1.4", "S4.R7.4")
async def test_no_output_is_lost_when_server_and_daemon_are_killed(
    own_stack: Stack, tmp_path: Path
) -> None:
    lines, spawn_log = 4000, tmp_path / "spawned"
    async with own_stack.caller() as caller:
        session_id = (
            await caller.start(oracle_command(lines, 0.005, spawn_log), wait_seconds=0.2)
        ).session_id
    for _ in range(2):
        _wait_for_more(own_stack, session_id)
        _restart_server(own_stack)
    _wait_for_more(own_stack, session_id)
    own_stack.kill_daemon()
    own_stack.start_daemon()
    _wait_for_more(own_stack, session_id)
    await await_until(
        lambda: own_stack.database.state(session_id) == "EXITED",
        60,
        "the program's end to be committed",
    )
    await assert_whole(own_stack, session_id, lines, spawn_log)
    await await_until(
        lambda: session_id not in own_stack.session_ids_on_host(),
        90,
        "the host to forget the session",
    )


async def test_a_waiting_program_survives_server_and_daemon_and_takes_input(
    own_stack: Stack,
) -> None:
    async with own_stack.caller() as caller:
        session = await caller.start("python3 -q")
        await session.send("kept = 41\n")
        session_id, holder = session.session_id, own_stack.holder_pid(session.session_id)
    own_stack.kill_daemon()
    own_stack.kill_server()
    own_stack.start_server()
    own_stack.start_daemon()
    assert own_stack.holder_pid(session_id) == holder
    async with own_stack.caller() as caller:
        answer = await caller.call(
            "send_command_input", session_id=session_id, input_text="print(kept + 1)\n"
        )
        assert "42" in answer["output"]
        assert answer["state"] == "awaiting_input"
        ended = await caller.call(
            "send_command_input", session_id=session_id, input_text="exit()\n"
        )
        assert (ended["state"], ended["exit_code"]) == ("exited", 0)


async def test_an_exit_while_the_daemon_is_dead_is_reported_with_its_exit_code(
    own_stack: Stack, tmp_path: Path
) -> None:
    go = tmp_path / "go"
    async with own_stack.caller() as caller:
        waits = f"bash -c 'echo first; until [ -e {go} ]; do sleep 0.05; done; echo last; exit 9'"
        session_id = (await caller.start(waits, wait_for="first")).session_id
        program = own_stack.program_pids(session_id)
        own_stack.kill_daemon()
        go.touch()
        await await_until(lambda: not any(map(is_running, program)), 90, "the program to end")
        own_stack.start_daemon()
        await await_until(
            lambda: own_stack.database.state(session_id) == "EXITED", 90, "the end to be reported"
        )
        assert own_stack.database.session(session_id, "exit_code") == (9,)
        assert own_stack.database.transcript(session_id) == b"first\r\nlast\r\n"


async def test_a_killed_holder_ends_its_session_as_lost_and_leaves_no_process(
    own_stack: Stack,
) -> None:
    async with own_stack.caller() as caller:
        session = await caller.start(
            "bash -c 'echo here; (setsid sleep 1000 &); trap \"\" HUP; while :; do sleep 1; done'",
            wait_for="here",
        )
        holder = own_stack.holder_pid(session.session_id)
        assert holder is not None
        send_signal(holder, signal.SIGKILL)
        await await_until(
            lambda: own_stack.database.state(session.session_id) == "LOST",
            90,
            "the loss to be noticed",
        )
        await await_until(
            lambda: not own_stack.program_pids(session.session_id), 90, "the program to be ended"
        )
        receipt = await caller.call("get_session", session_id=session.session_id)
        assert (receipt["state"], receipt["end_reason"]) == ("exited", "lost")
        async with caller.terminal("cat") as next_session:
            await next_session.send("works\n")
            assert "works" in next_session.result["output"]


async def test_holder_and_daemon_killed_together_are_noticed_at_the_next_start(
    own_stack: Stack,
) -> None:
    async with own_stack.caller() as caller:
        session = await caller.start(
            "bash -c 'trap \"\" HUP; echo here; while :; do sleep 1; done'", wait_for="here"
        )
        holder = own_stack.holder_pid(session.session_id)
        assert holder is not None
        own_stack.kill_daemon()
        send_signal(holder, signal.SIGKILL)
        own_stack.start_daemon()
        await await_until(
            lambda: own_stack.database.state(session.session_id) == "LOST",
            90,
            "the loss to be noticed",
        )
        await await_until(
            lambda: not own_stack.program_pids(session.session_id), 90, "the program to be ended"
        )
