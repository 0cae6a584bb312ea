"""The daemon's way to a fork server: who gets which spare holder, and what fails with it."""

import asyncio
import contextlib
import socket
from collections.abc import AsyncIterator

import pytest

from controller_client.server_link.holders.spares import MOST_FORKS, ForkServerLink
from tests.support.waiting import await_until

SESSION = "5f3b7d0a-0000-4000-8000-000000000001"


class ScriptedForkServer:
    """The other end of the link, played by the test."""

    def __init__(self) -> None:
        ours, self._socket = socket.socketpair()
        self._socket.setblocking(False)
        self.link = ForkServerLink(ours)
        self._asked = b""

    def sends_spare(self, pid: int, *, with_socket: bool = True) -> socket.socket:
        """Send a spare to the daemon, and return the spare's end of its socket."""
        ours, theirs = socket.socketpair()
        with ours:
            descriptors = [ours.fileno()] if with_socket else []
            socket.send_fds(self._socket, [b"+ %d\n" % pid], descriptors)
        return theirs

    def says(self, line: bytes) -> None:
        self._socket.sendall(line)

    async def hears(self, lines: bytes) -> None:
        await await_until(lambda: lines in self._hear(), 20, f"the daemon to say {lines!r}")

    def _hear(self) -> bytes:
        with contextlib.suppress(BlockingIOError):
            self._asked += self._socket.recv(4096)
        return self._asked

    def ends(self) -> None:
        self._socket.close()


@pytest.fixture
async def server() -> AsyncIterator[ScriptedForkServer]:
    server = ScriptedForkServer()
    yield server
    server.link.close()
    server.ends()


async def test_a_start_without_a_spare_asks_for_a_fork(server: ScriptedForkServer) -> None:
    giving = asyncio.create_task(server.link.give(SESSION))
    await server.hears(b"+\n")
    with server.sends_spare(41) as holder:
        spare = await giving
        spare.connection.send(b"START")
        assert (spare.pid, holder.recv(10)) == (41, b"START")
        spare.connection.close()
    await server.hears(f"41 {SESSION}\n~\n".encode())


async def test_a_fork_that_failed_fails_the_start_that_waits(server: ScriptedForkServer) -> None:
    giving = asyncio.create_task(server.link.give(SESSION))
    await server.hears(b"+\n")
    server.says(b"+ ENOMEM\n")
    with pytest.raises(OSError, match="memory"):
        await giving


async def test_a_spare_without_its_socket_is_a_lack_of_descriptors(
    server: ScriptedForkServer,
) -> None:
    giving = asyncio.create_task(server.link.give(SESSION))
    await server.hears(b"+\n")
    server.sends_spare(41, with_socket=False).close()
    with pytest.raises(OSError, match="open files"):
        await giving


async def test_the_holder_of_a_start_that_gave_up_serves_the_next(
    server: ScriptedForkServer,
) -> None:
    gone = asyncio.create_task(server.link.give(SESSION))
    await server.hears(b"+\n")
    gone.cancel()
    await asyncio.wait([gone])
    with server.sends_spare(41):
        spare = await asyncio.wait_for(server.link.give(SESSION), 20)
        assert spare.pid == 41
        spare.connection.close()


async def test_a_spare_that_ended_is_given_to_nobody(server: ScriptedForkServer) -> None:
    dead = server.sends_spare(41)
    with server.sends_spare(42):
        await await_until(lambda: len(server.link._spares) == 2, 20, "both spares to arrive")
        dead.close()
        spare = await server.link.give(SESSION)
        assert spare.pid == 42
        spare.connection.close()


async def test_a_fork_that_ended_at_once_is_given_to_nobody(server: ScriptedForkServer) -> None:
    giving = asyncio.create_task(server.link.give(SESSION))
    await server.hears(b"+\n")
    server.sends_spare(41).close()
    await server.hears(b"+\n+\n")
    with server.sends_spare(42):
        spare = await giving
        assert spare.pid == 42
        spare.connection.close()


async def test_a_start_fails_if_every_fork_ends_at_once(server: ScriptedForkServer) -> None:
    giving = asyncio.create_task(server.link.give(SESSION))
    for number in range(1, MOST_FORKS + 1):
        await server.hears(b"+\n" * number)
        server.sends_spare(40 + number).close()
    with pytest.raises(ConnectionResetError):
        await giving


async def test_the_end_of_the_fork_server_fails_all_that_wait(server: ScriptedForkServer) -> None:
    giving = asyncio.create_task(server.link.give(SESSION))
    asking = asyncio.create_task(server.link.ask(f"?{SESSION}", 20))
    await server.hears(f"?{SESSION}\n".encode())
    server.ends()
    for waiting in (giving, asking):
        with pytest.raises(ConnectionResetError):
            await waiting


async def test_equal_questions_are_answered_each_in_its_order(server: ScriptedForkServer) -> None:
    given_up = asyncio.create_task(server.link.ask(f"?{SESSION}", 20))
    asking = [asyncio.create_task(server.link.ask(f"?{SESSION}", 20)) for _ in range(2)]
    await server.hears(f"?{SESSION}\n".encode() * 3)
    given_up.cancel()
    server.says(b"".join(f"?{SESSION} {said}\n".encode() for said in ("0", "1", "2")))
    assert await asyncio.gather(*asking) == ["1", "2"]
