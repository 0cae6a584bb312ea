"""The database is restored to an earlier state while holders live.

Nothing acknowledged is dropped, and nothing ends in silence.
"""

import asyncio
import json
import signal
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from tests.support.processes import send_signal
from tests.support.stack import Stack
from tests.support.waiting import await_until, wait_until

pytestmark = pytest.mark.fault


@pytest.fixture
def stack() -> Iterator[Stack]:
    """One server on SQLite, and a daemon."""
    started = Stack()
    try:
        yield started.start()
    finally:
        started.stop()


def _back_up(stack: Stack, copy: Path) -> None:
    with (
        closing(sqlite3.connect(stack.database.path)) as live,
        closing(sqlite3.connect(copy)) as target,
    ):
        live.backup(target)


def _restore(stack: Stack, copy: Path) -> None:
    stack.kill_server()
    for suffix in ("", "-wal", "-shm"):
        stack.database.path.with_name(stack.database.path.name + suffix).unlink(missing_ok=True)
    stack.database.path.write_bytes(copy.read_bytes())
    # As if the backup was made just now, however long the machine took since then.
    stack.database.execute(
        "UPDATE projects_controller SET lease_expires_at = '2099-01-01 00:00:00'"
    )
    stack.start_server()


def _wait_for_host(stack: Stack, connections: int) -> None:
    connects = "SELECT COUNT(*) FROM projects_auditevent WHERE action = 'controller.connect'"
    wait_until(
        lambda: stack.database.rows(connects)[0][0] > connections, 60, "the daemon to be back"
    )


def _audited(stack: Stack, action: str) -> list[dict[str, Any]]:
    return [
        json.loads(row[0])
        for row in stack.database.rows(
            "SELECT detail FROM projects_auditevent WHERE action = ?", action
        )
    ]


def _settled(stack: Stack, kind: str) -> bool:
    return stack.database.rows(
        (
            "SELECT failure_code FROM projects_controllercommand WHERE type = ? AND settled_at IS "
            "NOT NULL"
        ),
        kind,
    ) == [("",)]


def _gap_reasons(stack: Stack, session_id: str) -> set[str]:
    key = session_id.replace("-", "")
    return {
        row[0]
        for row in stack.database.rows(
            "SELECT reason FROM projects_outputgap WHERE session_id = ?", key
        )
    }


@pytest.mark.parametrize(
    "is_at_once", [False, True], ids=["once the host is back", "before the host is back"]
)
async def test_after_a_restore_every_acknowledged_input_is_typed(
    stack: Stack, tmp_path: Path, is_at_once: bool
) -> None:
    typed, copy = tmp_path / "typed", tmp_path / "copy.sqlite3"
    async with stack.caller() as caller:
        session = await caller.start(
            f"sh -c 'while read a; do echo $a >>{typed}; echo got-$a; done'"
        )
        await session.send("one\n", wait_for="got-one")
        _back_up(stack, copy)
        for text in ("two", "three"):
            await session.send(f"{text}\n", wait_for=f"got-{text}")
        later = await caller.start(
            "sh -c 'echo begun; while read a; do echo later-$a; done'", wait_for="begun"
        )
    epoch, connections = stack.database.controller_epoch(stack.provisioned.controller), 1
    _restore(stack, copy)
    if not is_at_once:
        _wait_for_host(stack, connections)
    async with stack.caller() as caller:
        for text in ("four", "five", "six"):
            arguments = {"input_text": f"{text}\n", "wait_for": f"got-{text}", "wait_seconds": 20}
            answer = await caller.call(
                "send_command_input", session_id=session.session_id, **arguments
            )
            assert f"got-{text}" in answer["output"]
        assert typed.read_text().split() == ["one", "two", "three", "four", "five", "six"]
        await caller.call("resize_session", session_id=session.session_id, rows=30, cols=100)
        await await_until(lambda: _settled(stack, "RESIZE"), 90, "the resize to be carried out")
        adopted = await caller.call("get_session", session_id=later.session_id)
        assert "adopted" in adopted["notes"][0]
        answer = await caller.call(
            "send_command_input",
            session_id=later.session_id,
            input_text="on\n",
            wait_for="later-on",
        )
        assert "later-on" in answer["output"]
        for session_id in (session.session_id, later.session_id):
            ended = await caller.call("send_command_input", session_id=session_id, terminate=True)
            assert ended["end_reason"] == "terminated"
    assert _gap_reasons(stack, session.session_id) == {"restored"}
    # A holder keeps a little longer what was acknowledged: of that, some may have come again.
    assert _gap_reasons(stack, later.session_id) <= {"restored"}
    for session_id in (session.session_id, later.session_id):
        stack.database.accounted_bytes(session_id)
    assert stack.database.controller_epoch(stack.provisioned.controller) > epoch
    assert len(_audited(stack, "controller.restored")) == 1
    assert len(_audited(stack, "session.adopt")) == 1
    found = _audited(stack, "session.restored")
    assert [detail["inputs"]["host"] for detail in found if "inputs" in detail] == [3]
    assert any("output" in detail for detail in found)


async def test_an_input_for_a_holder_that_was_silent_after_a_restore_is_typed(
    stack: Stack, tmp_path: Path
) -> None:
    typed, copy = tmp_path / "typed", tmp_path / "copy.sqlite3"
    async with stack.caller() as caller:
        session = await caller.start(
            f"sh -c 'while read a; do echo $a >>{typed}; echo got-$a; done'"
        )
        await session.send("one\n", wait_for="got-one")
        _back_up(stack, copy)
        for text in ("two", "three"):
            await session.send(f"{text}\n", wait_for=f"got-{text}")
    holder = stack.holder_pid(session.session_id)
    assert holder is not None
    send_signal(holder, signal.SIGSTOP)
    try:
        _restore(stack, copy)
        _wait_for_host(stack, 1)
        async with stack.caller() as caller:
            arguments = {"input_text": "four\n", "wait_for": "got-four", "wait_seconds": 30}
            call = asyncio.create_task(
                caller.call("send_command_input", session_id=session.session_id, **arguments)
            )
            given = (
                "SELECT COUNT(*) FROM projects_controllercommand WHERE type = 'SEND_INPUT' "
                "AND settled_at IS NULL"
            )
            await await_until(
                lambda: stack.database.rows(given)[0][0] == 1, 90, "the input to be stored"
            )
            send_signal(holder, signal.SIGCONT)
            assert "got-four" in (await call)["output"]
            await caller.call("send_command_input", session_id=session.session_id, terminate=True)
    finally:
        send_signal(holder, signal.SIGCONT)
    assert typed.read_text().split() == ["one", "two", "three", "four"]


async def test_what_the_host_still_has_of_the_output_is_sent_again(
    stack: Stack, tmp_path: Path
) -> None:
    copy, go = tmp_path / "copy.sqlite3", tmp_path / "go"
    async with stack.caller() as caller:
        session = await caller.start(
            f"sh -c 'echo before; until [ -e {go} ]; do sleep 0.05; done; echo behind'",
            wait_for="before",
        )
    _back_up(stack, copy)
    stack.kill_server()
    go.touch()
    _restore(stack, copy)
    await await_until(
        lambda: stack.database.state(session.session_id) == "EXITED", 60, "the end to be told"
    )
    assert stack.database.transcript(session.session_id) == b"before\r\nbehind\r\n"


async def test_a_session_that_ended_after_the_backup_ends_and_says_what_is_known(
    stack: Stack, tmp_path: Path
) -> None:
    copy = tmp_path / "copy.sqlite3"
    async with stack.caller() as caller:
        session = await caller.start("sh -c 'read a'")
        _back_up(stack, copy)
        await session.send("bye\n")
        await await_until(
            lambda: session.session_id not in stack.session_ids_on_host(),
            90,
            "the host to forget the session",
        )
    _restore(stack, copy)
    await await_until(
        lambda: stack.database.state(session.session_id) == "LOST", 120, "the host to be asked"
    )
    (notes,) = stack.database.session(session.session_id, "notes")
    assert "may have exited since" in notes
