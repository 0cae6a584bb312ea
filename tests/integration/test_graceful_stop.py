"""SIGTERM to a server that is at work: who waits is answered, the host is sent elsewhere, nothing is lost, and the log says it in JSON."""

import asyncio
import json
import shlex
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.stack import SERVERS, Stack
from tests.support.waiting import await_until

TYPED, PRINTED = "typed-canary-1", "printed-canary-2"
# Whatever the machine is doing: far beyond what the stop is allowed, far below what a stop that waits for the call's own end takes.
BOUND_SECONDS = 25.0


@pytest.fixture(params=SERVERS)
def own_stack(request: pytest.FixtureRequest) -> Iterator[Stack]:
    """A stack to be stopped and started, on each of the servers."""
    kind = type("OwnStack", (Stack,), {"SERVER_KIND": request.param})
    stack = kind()
    try:
        yield stack.start()
    finally:
        stack.stop()


async def test_a_stopped_server_answers_who_waits_and_loses_nothing(own_stack: Stack, tmp_path: Path) -> None:
    stack, go = own_stack, tmp_path / "go"
    works = f"until [ -e {shlex.quote(str(go))} ]; do sleep 0.05; done"
    program = f'while read -p "> " x; do {works}; echo "{PRINTED} $x"; done'
    async with stack.caller() as caller:
        session = await caller.start(f"bash -c {shlex.quote(program)}", lifetime_seconds=250)
        waiting = asyncio.create_task(session.send(f"{TYPED}\n", wait_seconds=30))
        await await_until(lambda: TYPED.encode() in stack.database.transcript(session.session_id), 20, "the input to be typed")
        assert stack.server is not None
        stack.server.send_signal(signal.SIGTERM)
        async with asyncio.timeout(BOUND_SECONDS):
            answer = await waiting
            await asyncio.to_thread(stack.server.wait)
    assert answer["state"] == "running"
    assert stack.server.returncode in {0, -signal.SIGTERM}
    assert "sends us elsewhere" in (stack.root / "daemon.log").read_text()
    # What the program prints while no server is there comes with the next one.
    go.touch()
    stack.start_server()
    async with stack.caller() as caller:
        session.caller = caller
        await session.until("awaiting_input", 60)
        assert session.seen.count(f"{PRINTED} {TYPED}") == 1
        assert (await session.send("again\n"))["output"].count(f"{PRINTED} again") == 1
        await session.terminate()
    assert_log_is_clean(stack)


def assert_log_is_clean(stack: Stack) -> None:
    """Records, one per line, that name controllers and no contents."""
    log = stack.server_log()
    records = [json.loads(line) for line in log.splitlines()]
    assert {"time", "level", "logger", "message"} <= records[0].keys()
    assert any("controller_id" in record for record in records)
    assert TYPED not in log
    assert PRINTED not in log
    assert stack.provisioned.token[-43:] not in log
