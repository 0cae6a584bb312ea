"""The oldest supported release and this one work together, and sessions live through upgrades."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.support.installs.releases import TwoReleases
from tests.support.management import manage_well
from tests.support.mcp.client import Terminal
from tests.support.stack import PROJECT_ROOT

UPGRADES: dict[str, Callable[[TwoReleases], None]] = {
    "daemon": TwoReleases.upgrade_daemon,
    "tables": TwoReleases.migrate,
    "restart": TwoReleases.restart_server,
    "server": TwoReleases.upgrade_server,
    "return": TwoReleases.go_back,
    "end": TwoReleases.upgrade_server,
}


@pytest.fixture
def stack() -> Iterator[TwoReleases]:
    """Server and daemon of the oldest supported release."""
    started = TwoReleases()
    try:
        yield started
    finally:
        started.stop()


def _echo(log: Path) -> str:
    return f"sh -c 'while read a; do echo $a >>{log}; echo got-$a; done'"


async def _say(stack: TwoReleases, session_id: str, text: str) -> None:
    async with stack.caller() as caller:
        answer = await caller.call(
            "send_command_input",
            session_id=session_id,
            input_text=f"{text}\n",
            wait_for=f"got-{text}",
            wait_seconds=20,
        )
        assert f"got-{text}" in answer["output"]


async def _start(stack: TwoReleases, log: Path) -> str:
    async with stack.caller() as caller:
        session: Terminal = await caller.start(_echo(log))
        return session.session_id


async def test_sessions_live_through_the_upgrade_of_daemon_and_server(
    stack: TwoReleases, tmp_path: Path
) -> None:
    """Between the first upgrade and the last one, parts of both releases work together."""
    stack.start()
    sessions = [await _start(stack, tmp_path / "0")]
    await _say(stack, sessions[0], "before")
    for number, side in enumerate(UPGRADES, start=1):
        UPGRADES[side](stack)
        stack.manage("create_project", f"with-new-{side}")
        sessions.append(await _start(stack, tmp_path / str(number)))
        for session_id in sessions:
            await _say(stack, session_id, f"with-new-{side}")
    for session_id in sessions:
        async with stack.caller() as caller:
            ended = await caller.call("send_command_input", session_id=session_id, terminate=True)
        assert ended["state"] == "exited"
        await stack.database.await_verified(session_id)
    said = ["before", *(f"with-new-{side}" for side in UPGRADES)]
    for number in range(len(said)):
        assert (tmp_path / str(number)).read_text().split() == said[number:]
    assert stack.server_release == stack.daemon_release == PROJECT_ROOT
    assert "whole" in manage_well(stack, "verify_audit")
