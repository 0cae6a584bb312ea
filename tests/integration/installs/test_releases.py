"""The oldest supported release and this one work together, and sessions live through upgrades."""

import asyncio
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.support.databases.cluster import running_backends
from tests.support.installs.releases import TwoReleases
from tests.support.load import steady_load
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
_SLOWLY_SECONDS = 400.0
"""The turns of a phase of the long form, which take 100 seconds on a machine that keeps up."""


@pytest.fixture
def stack() -> Iterator[TwoReleases]:
    """Server and daemon of the oldest supported release."""
    started = TwoReleases()
    try:
        yield started
    finally:
        started.stop()


@pytest.fixture(params=["sqlite", "postgresql"])
def loaded(request: pytest.FixtureRequest) -> Iterator[TwoReleases]:
    """Server and daemon of the oldest supported release, started, on either storage."""
    with ExitStack() as on_exit:
        is_embedded = request.param == "sqlite"
        backends = None if is_embedded else on_exit.enter_context(running_backends())
        # The default lifetime of a session is over before the long form is.
        lifetime = {"INTERACTIVE_CMD_TIMEOUT_SECONDS": "3600"}
        started = TwoReleases(backends=backends, server_environment=lifetime)
        on_exit.callback(started.stop)
        yield started.start()


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


@pytest.mark.timeout(1500)
async def test_an_upgrade_under_load_loses_no_turn_and_doubles_none(
    loaded: TwoReleases, tmp_path: Path, is_long: bool
) -> None:
    """The longest stall is printed. It is not checked, because it depends on the machine."""
    turns = 300 if is_long else 10
    async with steady_load(loaded, tmp_path, what="upgrade", turns_per_second=30) as load:
        await load.progress(turns, _SLOWLY_SECONDS)
        for upgrade in (loaded.upgrade_daemon, loaded.upgrade_server):
            await asyncio.to_thread(upgrade)
            await load.progress(turns, _SLOWLY_SECONDS)
    assert "whole" in manage_well(loaded, "verify_audit")
