"""A host acts and dies before it can say so.

The outcome is reported as unknown until the host is back and reports it.
"""

import asyncio
import signal
import uuid
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from tests.support.mcp.light_client import LightCaller
from tests.support.processes import pause, send_signal
from tests.support.stack import Stack, running_stack
from tests.support.waiting import ConditionNotMetError, await_until

pytestmark = pytest.mark.fault


@pytest.fixture
def stack() -> Iterator[Stack]:
    """A stack whose server sweeps often."""
    with running_stack(server_environment={"HOLDLINE_SWEEP_SECONDS": "0.2"}) as started:
        yield started


def _stop_daemon(stack: Stack) -> None:
    assert stack.daemon is not None
    stack.daemon.send_signal(signal.SIGSTOP)


def _let_daemon_go_on_unheard(stack: Stack) -> None:
    """Continue the daemon and stop the server, which hears nothing of the daemon's work."""
    assert stack.daemon is not None
    stack.pause_server()
    stack.daemon.send_signal(signal.SIGCONT)


def _kill_all(stack: Stack) -> None:
    stack.kill_server()
    stack.kill_daemon()


def _make_late(stack: Stack) -> None:
    """Set the times of the database as if the host had been away for minutes."""
    stack.database.execute(
        "UPDATE projects_controllercommand SET expires_at = '2020-01-01 00:00:00'"
    )
    stack.database.execute(
        "UPDATE projects_controller SET lease_expires_at = '2020-01-01 00:00:00'"
    )


def _sent_start(stack: Stack) -> str | None:
    rows = stack.database.rows("SELECT id FROM projects_commandsession WHERE state = 'SENT'")
    return str(uuid.UUID(rows[0][0])) if rows else None


def _has_unread_frame(stack: Stack) -> bool:
    """True if more than a PING lies unread in the daemon's connection to its server."""
    assert stack.daemon is not None
    opened = Path(f"/proc/{stack.daemon.pid}/fd")
    sockets = {str(descriptor.readlink()) for descriptor in opened.iterdir()}
    connections = [line.split() for line in Path("/proc/net/tcp").read_text().splitlines()[1:]]
    unread = [
        int(found[4].split(":")[1], 16)
        for found in connections
        if int(found[2].split(":")[1], 16) == stack.daemon_port
        and f"socket:[{found[9]}]" in sockets
    ]
    return any(size > 250 for size in unread)


@asynccontextmanager
async def _nobody_waits_for(stack: Stack, tool: str, **arguments: object) -> AsyncIterator[None]:
    """A call that is made in the block and cancelled at its end."""
    caller = LightCaller("127.0.0.1", stack.port, stack.provisioned.token)
    call = asyncio.create_task(caller.ask(tool, **arguments))
    try:
        yield
    finally:
        call.cancel()
        await asyncio.gather(call, return_exceptions=True)
        caller.close()


async def _begun(stack: Stack, tool: str, **arguments: object) -> str:
    """Send a start to a stopped daemon, cancel the call, and return the session's id."""
    _stop_daemon(stack)
    async with _nobody_waits_for(stack, tool, **arguments):
        session_id = str(await await_until(lambda: _sent_start(stack), 90, "the start to be sent"))
        await await_until(
            lambda: _has_unread_frame(stack),
            90,
            "the start to have come to the daemon's socket",
        )
        return session_id


@pytest.mark.parametrize(
    "tool", ["start_interactive_command", "start_command", "execute_command", "run_command"]
)
async def test_a_start_is_reported_as_unknown_until_its_host_answers(
    stack: Stack, tmp_path: Path, tool: str
) -> None:
    ran = tmp_path / "ran"
    session_id = await _begun(stack, tool, command=f"sh -c 'echo ran >>{ran}; sleep 20'")
    _let_daemon_go_on_unheard(stack)
    await await_until(ran.exists, 90, "the program to run")
    _kill_all(stack)
    _make_late(stack)
    stack.start_server()
    async with stack.caller() as caller:
        # These calls last many rounds of the sweeper, which must not end the session.
        await caller.refusal("start_command", command="true")
        for _ in range(2):
            await caller.call("read_output", sessionId=session_id, timeout=1500)
        shown = await caller.call("get_session", session_id=session_id)
    assert "has not said yet" in shown["hint"]
    assert stack.database.state(session_id) == "SENT"
    stack.start_daemon()
    await await_until(
        lambda: stack.database.state(session_id) != "SENT", 90, "the host to say what became of it"
    )
    assert stack.database.state(session_id) in {"RUNNING", "EXITED"}
    assert ran.read_text() == "ran\n"


async def test_a_late_start_that_the_daemon_never_read_expires(
    stack: Stack, tmp_path: Path
) -> None:
    ran = tmp_path / "ran"
    session_id = await _begun(
        stack, "start_interactive_command", command=f"touch {ran}", wait_seconds=0
    )
    _kill_all(stack)
    _make_late(stack)
    stack.start_server()
    stack.start_daemon()
    await await_until(
        lambda: stack.database.state(session_id) != "SENT", 90, "the host to say what became of it"
    )
    assert stack.database.session(session_id, "state", "failure_code") == ("EXPIRED", "EXPIRED")
    assert not ran.exists()


@pytest.mark.parametrize("tool", ["start_interactive_command", "start_command"])
async def test_an_input_without_an_answer_is_reported_as_unconfirmed(
    stack: Stack, tmp_path: Path, tool: str
) -> None:
    typed, request_id = tmp_path / "typed", str(uuid.uuid4())
    reading = f"sh -c 'while read a; do echo $a >>{typed}; done'"
    if tool == "start_interactive_command":
        write, key, more = (
            "send_command_input",
            "session_id",
            {"input_text": "once\n", "request_id": request_id, "wait_seconds": 1},
        )
    else:
        write, key, more = "write_input", "sessionId", {"input": "once\n", "requestId": request_id}
    async with stack.caller() as caller:
        started = await caller.call(tool, command=reading)
    session_id = str(started.get("session_id") or started["sessionId"])
    holder = stack.holder_pid(session_id)
    assert holder is not None
    send_signal(holder, signal.SIGSTOP)
    async with _nobody_waits_for(stack, write, **{key: session_id}, **more):
        await await_until(lambda: _is_input_sent(stack), 90, "the input to be sent")
        await await_until(lambda: _has_read(typed, stack, holder), 90, "the program to read it")
        send_signal(holder, signal.SIGKILL)
        stack.kill_daemon()
    stack.start_daemon()
    await await_until(
        lambda: stack.database.state(session_id) == "LOST", 90, "the loss to be noticed"
    )
    async with stack.caller() as caller:
        refusal = await caller.refusal(write, **{key: session_id}, **more)
    assert (refusal["code"], refusal["retryable"]) == ("INPUT_UNCONFIRMED", False)
    assert typed.read_text() == "once\n"


def _is_input_sent(stack: Stack) -> bool:
    return bool(
        stack.database.rows(
            "SELECT 1 FROM projects_controllercommand WHERE type = 'SEND_INPUT' AND sent_epoch IS "
            "NOT NULL"
        )
    )


async def _has_read(typed: Path, stack: Stack, holder: int) -> bool:
    """Let the daemon run, then the holder; True if the program has read the input.

    The two never run together, so the daemon gets no acknowledgement from the holder.
    """
    assert stack.daemon is not None
    pause(holder)
    stack.daemon.send_signal(signal.SIGCONT)
    if await _comes(typed, 0.2):
        pytest.fail("the holder ran while it was stopped")
    pause(stack.daemon.pid)
    send_signal(holder, signal.SIGCONT)
    return await _comes(typed, 1)


async def _comes(path: Path, seconds: float) -> bool:
    try:
        return bool(await await_until(path.exists, seconds, f"{path} to come"))
    except ConditionNotMetError:
        return False


async def test_a_job_whose_holder_dies_is_reported_as_lost(stack: Stack) -> None:
    async with stack.caller() as caller:
        job = await caller.call("run_command", command="sleep 1000", timeout=2000)
        await await_until(
            lambda: stack.database.state(job["token"]) == "RUNNING", 90, "the job to run"
        )
        holder = stack.holder_pid(job["token"])
        assert holder is not None
        send_signal(holder, signal.SIGKILL)
        await await_until(
            lambda: stack.database.state(job["token"]) == "LOST", 90, "the loss to be noticed"
        )
        answer = await caller.call("query_command_status", token=job["token"])
    assert (answer["status"], answer["error_code"]) == ("completed", "LOST")
    assert "lost" in answer["error"]
