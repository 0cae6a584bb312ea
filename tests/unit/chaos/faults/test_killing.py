"""A process that starts slowly is a new one, and runs freely in the end."""

import asyncio
import os
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from chaos.faults.acts import ACTS
from chaos.history import events
from chaos.plant.processes import Command, Process, is_stopped
from chaos.plant.product import until
from tests.unit.chaos.faults.harmed import fault_of, harm_of


@pytest.fixture
async def process(tmp_path: Path) -> AsyncIterator[Process]:
    """A process that waits until it is ended."""
    arguments = [sys.executable, "-c", "import signal; signal.pause()"]
    found = Process(
        "server0", tmp_path / "log", lambda: Command(arguments, dict(os.environ), tmp_path)
    )
    found.start()
    yield found
    await found.end()


async def _ready(process: Process) -> float:
    process.start()
    return 0.0


async def test_a_slow_start_is_a_new_process_that_runs_freely_in_the_end(
    process: Process, tmp_path: Path
) -> None:
    before = process.pid
    with harm_of(tmp_path, servers=[process], ready=_ready) as harm:
        await ACTS["server_slow_start"](harm, fault_of("server_slow_start", 0.5))
    pid = process.pid
    assert pid is not None
    assert pid != before
    assert not is_stopped(pid)
    assert [event["state"] for event in events(tmp_path)] == ["begin", "end", "ready"]


async def test_the_process_that_makes_holders_stands_still_and_goes_on(
    process: Process, tmp_path: Path
) -> None:
    pid = process.pid
    assert pid is not None
    with harm_of(tmp_path, fork_servers=lambda: [pid]) as harm:
        act = ACTS["fork_server_stop"]
        doing = asyncio.ensure_future(act(harm, fault_of("fork_server_stop", 3600)))
        await until(lambda: is_stopped(pid), 30, "stopped")
        doing.cancel()
        await asyncio.gather(doing, return_exceptions=True)
        await until(lambda: not is_stopped(pid), 30, "going on")
    assert process.pid == pid
