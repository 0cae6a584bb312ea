"""SIGTERM to a server at work.

Waiting calls are answered, the host is sent elsewhere, nothing is lost, and the log is JSON.
"""

import asyncio
import json
import shlex
import signal
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import httpx2
import pytest

from tests.support.stack import SERVERS, Stack
from tests.support.waiting import await_until

TYPED, PRINTED = "typed-canary-1", "printed-canary-2"
# Far longer than a stop may take, and far shorter than the call would wait by itself.
BOUND_SECONDS = 25.0


@pytest.fixture(params=SERVERS)
def own_stack(request: pytest.FixtureRequest) -> Iterator[Stack]:
    """A stack for one test to stop and start, on each kind of server."""
    kind = type("OwnStack", (Stack,), {"SERVER_KIND": request.param})
    stack = kind()
    try:
        yield stack.start()
    finally:
        stack.stop()


async def test_a_stopping_server_answers_waiting_calls_and_loses_nothing(
    own_stack: Stack, tmp_path: Path
) -> None:
    stack, go = own_stack, tmp_path / "go"
    works = f"until [ -e {shlex.quote(str(go))} ]; do sleep 0.05; done"
    program = f'while read -p "> " x; do {works}; echo "{PRINTED} $x"; done'
    async with stack.caller() as caller:
        session = await caller.start(f"bash -c {shlex.quote(program)}", lifetime_seconds=250)
        waiting = asyncio.create_task(session.send(f"{TYPED}\n", wait_seconds=30))
        await await_until(
            lambda: TYPED.encode() in stack.database.transcript(session.session_id),
            20,
            "the input to be typed",
        )
        assert stack.server is not None
        stack.server.send_signal(signal.SIGTERM)
        async with asyncio.timeout(BOUND_SECONDS):
            answer = await waiting
            await asyncio.to_thread(stack.server.wait)
    assert answer["state"] == "running"
    assert stack.server.returncode in {0, -signal.SIGTERM}
    daemon_log = stack.root / "daemon.log"
    await await_until(
        lambda: "the server closes this connection" in daemon_log.read_text(),
        60,
        "the daemon to tell why its connection ended",
    )
    # Output that the program prints while no server runs is delivered to the next server.
    go.touch()
    stack.start_server()
    async with stack.caller() as caller:
        session.caller = caller
        await session.until("awaiting_input", 60)
        assert session.seen.count(f"{PRINTED} {TYPED}") == 1
        assert (await session.send("again\n"))["output"].count(f"{PRINTED} again") == 1
        await session.terminate()
    assert_log_is_clean(stack)


@pytest.mark.sqlite
async def test_a_locked_database_does_not_delay_the_stop(own_stack: Stack) -> None:
    stack = own_stack
    assert stack.server is not None
    with closing(sqlite3.connect(stack.data_dir / "db.sqlite3", isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        async with httpx2.AsyncClient(timeout=20) as client:
            # When this is answered, a thread waits for the lock.
            assert (await client.get(f"http://127.0.0.1:{stack.port}/readyz")).status_code == 503
        stack.server.send_signal(signal.SIGTERM)
        async with asyncio.timeout(BOUND_SECONDS):
            await asyncio.to_thread(stack.server.wait)
        # The lock was held until now, so the stop did not wait for it.
        other.execute("ROLLBACK")
    assert stack.server.returncode in {0, -signal.SIGTERM}


def assert_log_is_clean(stack: Stack) -> None:
    """Check that each log line is a record, that some name a controller, and none has contents."""
    log = stack.server_log()
    # The next server goes on, and may be in the middle of a line.
    records = [json.loads(line) for line in log[: log.rfind("\n") + 1].splitlines()]
    assert {"time", "level", "logger", "message"} <= records[0].keys()
    assert any("controller_id" in record for record in records)
    assert TYPED not in log
    assert PRINTED not in log
    assert stack.provisioned.token[-43:] not in log
