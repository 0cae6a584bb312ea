"""A restore goes by the steps of the guide, and says from when to when nobody is served."""

import asyncio
import os
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from chaos.faults import restores
from chaos.faults.acts import ACTS
from chaos.history import events
from chaos.plant.processes import Command, Process
from tests.unit.chaos.faults.harmed import fault_of, harm_of

_SERVED = "CommandError: a server or another program still uses the database"


class Commands:
    """The commands of an administrator; the first ``refused`` restores are refused."""

    def __init__(self, server: Process, refused: list[str]) -> None:
        self.done: list[str] = []
        self._server, self._refused = server, refused

    async def manage(self, name: str, *arguments: str) -> str:
        self.done.append(f"{name} with a server" if self._server.pid else name)
        if name == "backup":
            await asyncio.to_thread(os.makedirs, f"{arguments[0]}/holdline-20261125T000000Z")
        if name == "restore" and self._refused:
            raise RuntimeError(self._refused.pop())
        return ""

    async def ready(self, process: Process) -> float:
        process.start()
        return 0.0


@pytest.fixture
async def server(tmp_path: Path) -> AsyncIterator[Process]:
    """A process that waits until it is ended."""
    arguments = [sys.executable, "-c", "import signal; signal.pause()"]
    found = Process(
        "server0", tmp_path / "log", lambda: Command(arguments, dict(os.environ), tmp_path)
    )
    found.start()
    yield found
    await found.end()


async def test_a_restore_is_done_without_servers_and_confirmed_with_them(
    server: Process, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(restores, "_PAUSE_SECONDS", 0.0)
    does = Commands(server, [_SERVED])
    with harm_of(tmp_path, servers=[server], manage=does.manage, ready=does.ready) as harm:
        await ACTS["restore"](harm, fault_of("restore"))
    assert does.done == [
        "backup with a server",
        "restore",
        "restore",
        "confirm_restore with a server",
    ]
    noted = [event.get("is_so", event.get("state")) for event in events(tmp_path)]
    assert noted == ["begin", True, "ready", False, "end"]


async def test_a_restore_that_is_refused_for_another_reason_fails_the_run(
    server: Process, tmp_path: Path
) -> None:
    does = Commands(server, ["not what the manifest says"])
    with (
        harm_of(tmp_path, servers=[server], manage=does.manage, ready=does.ready) as harm,
        pytest.raises(RuntimeError, match="manifest"),
    ):
        await ACTS["restore"](harm, fault_of("restore"))
