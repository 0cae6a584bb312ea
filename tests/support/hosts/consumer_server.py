"""A real Daphne process that serves the controllers' socket on the test database.

It comes with the messages and checks that its tests share.
"""

import asyncio
import os
import subprocess
import sys
import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings
from django.db import connection, transaction
from websockets.exceptions import ConnectionClosed

from controller_client.protocol.messages import InteractiveOutput
from projects.accounts.credentials import controller_credential_create
from projects.models import CommandSession, Controller
from projects.output import log as output_log
from projects.storage.access import at_length, in_database
from tests.support.hosts.scripted_controller import ScriptedController
from tests.support.ports import free_port
from tests.support.rows import make_controller
from tests.support.stack import PROJECT_ROOT, accepts
from tests.support.waiting import wait_until

DAPHNE = str(Path(sys.executable).parent / "daphne")


@pytest.fixture(scope="module")
def consumer_port(django_db_setup: None) -> Iterator[int]:
    """The port of a Daphne process on the test database.

    Its doorbells ring in another process than the test's, so it looks at the database often.
    """
    port = free_port()
    variables = {
        "DJANGO_SETTINGS_MODULE": "config.settings.base",
        "HOLDLINE_DATA_DIR": str(settings.DATA_DIR),
        "DATABASE_URL": _test_database_url(),
        "HOLDLINE_SAFETY_NET_SECONDS": "0.05",
        "HOLDLINE_HEARTBEAT_SECONDS": "0.3",
        # A test on a busy machine may need seconds between its connection and its HELLO.
        "HOLDLINE_HELLO_DEADLINE_SECONDS": "5",
    }
    command = [
        DAPHNE,
        "-b",
        "127.0.0.1",
        "-p",
        str(port),
        "--websocket_timeout",
        "-1",
        "-v",
        "0",
        "config.asgi:application",
    ]
    log_path = Path(settings.DATA_DIR) / "daphne.log"
    with log_path.open("wb") as log:
        process = subprocess.Popen(
            command, cwd=PROJECT_ROOT, env={**os.environ, **variables}, stdout=log, stderr=log
        )
    try:
        wait_until(lambda: accepts(port) or process.poll() is not None, 240, "Daphne to listen")
        yield port
    finally:
        process.kill()
        process.wait()
        sys.stderr.write(log_path.read_text())


def _test_database_url() -> str:
    found = connection.settings_dict
    if connection.vendor == "sqlite":
        return f"sqlite://{found['NAME']}"
    return f"postgres://{found['USER']}:{found['PASSWORD']}@{found['HOST']}:{found['PORT']}/{found['NAME']}"


def enrolled(name: str = "host") -> tuple[Controller, str]:
    """A new controller, and its credential."""
    controller = make_controller(name)
    return controller, controller_credential_create(controller=controller)[1]


def output_of(
    session: CommandSession, offset: int, data: bytes, **fields: Any
) -> InteractiveOutput:
    """A frame with standard output of the session."""
    return InteractiveOutput(
        session_id=str(session.id), stream="stdout", offset=offset, seq=1, data=data, **fields
    )


async def stored(session: CommandSession) -> bytes:
    """The bytes of the session's stdout that the server has stored."""
    return (await in_database(output_log.read, session.id, "stdout", 0, 1 << 20)).data


async def expect_close(host: ScriptedController, close_code: int, code: str) -> None:
    """Check that the connection ends with ``close_code`` after one ERROR with ``code``."""
    assert await host.closed() == close_code
    assert [error.code for error in host.errors] == [code]


async def send_all(host: ScriptedController, messages: list[InteractiveOutput]) -> None:
    """Send the messages until the server closes the connection."""
    try:
        await host.send(*messages)
    except ConnectionClosed:
        return


@asynccontextmanager
async def held(session: CommandSession) -> AsyncIterator[None]:
    """Nothing can be committed for the session in the block: its row is locked."""
    is_held, release = threading.Event(), threading.Event()

    def hold() -> None:
        with transaction.atomic():
            CommandSession.objects.select_for_update().get(id=session.id)
            is_held.set()
            release.wait(60)

    holding = asyncio.create_task(at_length(hold))
    await asyncio.to_thread(is_held.wait, 60)
    try:
        yield
    finally:
        release.set()
        await holding
