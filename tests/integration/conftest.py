"""A scripted server, and a real daemon that is connected to it."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.support.hosts.daemon_process import DaemonProcess, daemon_process
from tests.support.hosts.scripted_server import ScriptedServer, scripted_server


@pytest.fixture
async def server() -> AsyncIterator[ScriptedServer]:
    async with scripted_server() as running:
        yield running


@pytest.fixture
async def daemon(tmp_path: Path, server: ScriptedServer) -> AsyncIterator[DaemonProcess]:
    async with daemon_process(tmp_path, server.url) as running:
        await server.connected()
        yield running
