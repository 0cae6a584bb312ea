"""A browser's end of the console's socket, and people who sign in."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from django.contrib.auth.models import Permission, User
from django.test import Client
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed

from projects.models import Project
from tests.support.people.frames import message_of

RIGHTS = ("view_commandsession", "view_transcript", "take_over_session")
_SECONDS = 60.0


def sign_in(name: str, *projects: Project, rights: tuple[str, ...] = RIGHTS) -> str:
    """Make a member of staff and sign them in. Returns the key of the login."""
    user = User.objects.create_user(name, is_staff=True)
    user.user_permissions.set(Permission.objects.filter(codename__in=rights))
    for project in projects:
        project.members.add(user)
    client = Client()
    client.force_login(user)
    return str(client.session.session_key)


class ConsoleSocket:
    """A connection as a page has it. ``heard`` are all messages, in their order."""

    def __init__(self, connection: ClientConnection) -> None:
        self._connection = connection
        self.heard: list[dict[str, Any]] = []

    async def send(self, type_: str, **fields: Any) -> None:
        """Send one message to the server."""
        await self._connection.send(json.dumps({"type": type_, **fields}))

    async def receive(self, *types: str) -> dict[str, Any]:
        """The next message of one of these types. Raises ConnectionClosed."""
        async with asyncio.timeout(_SECONDS):
            while True:
                message = message_of(await self._connection.recv())
                self.heard.append(message)
                if message["type"] == "board":
                    await self.send("board_seen", version=message["version"])
                if message["type"] in types:
                    return message

    async def output(self, size: int) -> bytes:
        """The next ``size`` bytes of output, which have to be without a hole; all are shown."""
        data = b""
        end = None
        while len(data) < size:
            message = await self.receive("output")
            assert end in (None, message["offset"])
            data += message["data"]
            end = message["offset"] + len(message["data"])
            await self.send("seen", offset=end)
        return data

    async def closed(self) -> tuple[int | None, str]:
        """The code with which the server closes the connection, and the reason that it sent."""
        reason = ""
        try:
            while True:
                reason = (await self.receive("closed"))["code"]
        except ConnectionClosed as error:
            return error.rcvd.code if error.rcvd else None, reason


@asynccontextmanager
async def console_socket(
    port: int, key: str, *, origin: str | None = None
) -> AsyncIterator[ConsoleSocket]:
    """A socket that a page of ``origin`` opened; by default, of the server itself."""
    origin = origin or f"http://127.0.0.1:{port}"
    async with connect(
        f"ws://127.0.0.1:{port}/ws/console/",
        additional_headers={"Cookie": f"sessionid={key}", "Origin": origin},
        max_size=None,
    ) as connection:
        yield ConsoleSocket(connection)
