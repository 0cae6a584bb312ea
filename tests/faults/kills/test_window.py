"""A holder dies while the server cannot commit: its bytes in flight still fill the window."""

import os
import shlex
import signal
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from functools import partial
from pathlib import Path

import httpx2
import pytest

from controller_client.protocol.limits import CONNECTION_WINDOW_BYTES, SESSION_WINDOW_BYTES
from tests.support.stack import Stack
from tests.support.waiting import await_until

pytestmark = [pytest.mark.fault, pytest.mark.sqlite]

_BYTES = 700_000
_OTHERS = 3
_LOOKS_WITHOUT_CHANGE = 20


def _prints_when(go: Path) -> str:
    script = (
        f"until [ -e {go} ]; do sleep 0.05; done; head -c {_BYTES} /dev/zero | tr '\\0' x; "
        f"touch {go}.done; sleep 600"
    )
    return f"sh -c {shlex.quote(script)}"


@contextmanager
def _no_commit(stack: Stack) -> Iterator[None]:
    with closing(sqlite3.connect(stack.database.path, isolation_level=None, timeout=60)) as other:
        other.execute("BEGIN IMMEDIATE")
        yield
        other.execute("ROLLBACK")


def _is_in(stack: Stack, session: str, state: str) -> bool:
    return stack.database.state(session) == state


def _has_stored_all(stack: Stack, session: str) -> bool:
    return stack.database.accounted_bytes(session) == (_BYTES, 0)


async def _metric(stack: Stack, name: str) -> float:
    async with httpx2.AsyncClient(timeout=60) as client:
        page = (await client.get(f"http://127.0.0.1:{stack.port}/metrics")).text
    values = [float(line.split()[-1]) for line in page.splitlines() if line.startswith(name)]
    return sum(values)


async def _unacked_at_rest(stack: Stack) -> float:
    """The bytes that the server has and cannot commit, once they do not change any more."""
    seen: list[float] = []

    async def is_at_rest() -> bool:
        seen.append(await _metric(stack, "holdline_output_unacked_bytes"))
        last = seen[-_LOOKS_WITHOUT_CHANGE:]
        return len(last) == _LOOKS_WITHOUT_CHANGE and len(set(last)) == 1

    await await_until(is_at_rest, 90, "no more output to come")
    return seen[-1]


async def test_bytes_in_flight_of_a_dead_holder_break_no_window(
    own_stack: Stack, tmp_path: Path
) -> None:
    stack = own_stack
    marks = [tmp_path / f"go{number}" for number in range(_OTHERS + 1)]
    async with stack.caller() as caller:
        sessions = [
            (await caller.start(_prints_when(mark), wait_seconds=0)).session_id for mark in marks
        ]
    for session in sessions:
        await await_until(partial(_is_in, stack, session, "RUNNING"), 90, "the program to run")
    killed, *others = sessions
    holder = stack.holder_pid(killed)
    assert holder is not None
    with _no_commit(stack):
        marks[0].touch()
        await await_until(Path(f"{marks[0]}.done").exists, 90, "the first program to print")
        assert await _unacked_at_rest(stack) > SESSION_WINDOW_BYTES / 2
        os.kill(holder, signal.SIGKILL)
        for mark in marks[1:]:
            mark.touch()
        for mark in marks[1:]:
            await await_until(Path(f"{mark}.done").exists, 90, "the others to print")
        assert await _unacked_at_rest(stack) <= CONNECTION_WINDOW_BYTES
    for session in others:
        await await_until(
            partial(_has_stored_all, stack, session), 90, "all output of the others to be stored"
        )
    await await_until(partial(_is_in, stack, killed, "LOST"), 90, "the loss to be noticed")
    assert await _metric(stack, "holdline_protocol_violations_total") == 0.0
    assert stack.database.rows(
        "SELECT COUNT(*) FROM projects_auditevent WHERE action = 'controller.protocol_violation'"
    ) == [(0,)]
