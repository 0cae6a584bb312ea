"""Slow peers, and frames that would expand to a large size, cost others neither time nor memory."""

import socket
import zlib
from collections.abc import Iterator
from contextlib import ExitStack
from http import HTTPStatus

import pytest
from websockets.asyncio.client import connect

from controller_client.protocol.limits import MAX_FRAME_BYTES, CloseCode
from tests.support.hosts.scripted_controller import scripted_controller
from tests.support.processes import resident_bytes
from tests.support.stack import Stack, running_stack

pytestmark = pytest.mark.fault

_MIB = 1024 * 1024
_COUNT = 150
_UNFOLDED = 100 * _MIB
_HALVES = (
    b"POST /mcp HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bea",
    (
        b"POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
        b"Content-Length: 1000000\r\n\r\n{"
    ),
    (
        b"GET /ws/controller/ HTTP/1.1\r\nHost: localhost\r\nUpgrade: websocket\r\n"
        b"Connection: Upgrade\r\nSec-WebSocket-Ve"
    ),
)


@pytest.fixture(scope="module")
def own_stack() -> Iterator[Stack]:
    """One stack for both tests, because neither leaves anything behind in it."""
    with running_stack() as started:
        yield started


async def test_half_sent_requests_delay_no_other_peer(own_stack: Stack) -> None:
    assert own_stack.server is not None
    base = resident_bytes(own_stack.server.pid)
    with ExitStack() as slow:
        for number in range(_COUNT):
            peer = slow.enter_context(socket.create_connection(("127.0.0.1", own_stack.port)))
            peer.sendall(_HALVES[number % len(_HALVES)])
        async with own_stack.caller() as caller, caller.terminal("cat") as session:
            await session.send("word\n", wait_seconds=25)
            assert session.seen.split() == ["word", "word"]
        assert resident_bytes(own_stack.server.pid) - base < 64 * _MIB


async def test_compression_is_not_offered_and_compressed_frames_are_refused(
    own_stack: Stack,
) -> None:
    assert own_stack.server is not None
    credential = own_stack.provisioned.credential
    headers = {"Authorization": f"Bearer {credential}"}
    url = f"ws://127.0.0.1:{own_stack.port}/ws/controller/"
    async with connect(url, additional_headers=headers, compression="deflate") as asking:
        assert asking.response is not None
        assert asking.response.status_code == HTTPStatus.SWITCHING_PROTOCOLS
        assert "Sec-WebSocket-Extensions" not in asking.response.headers
    base = resident_bytes(own_stack.server.pid)
    bomb = zlib.compress(bytes(_UNFOLDED))
    assert len(bomb) < MAX_FRAME_BYTES
    async with scripted_controller(own_stack.port, credential) as bomber:
        await bomber.send_raw(bomb)
        assert await bomber.closed() == CloseCode.BAD_FRAME
    assert resident_bytes(own_stack.server.pid) - base < 64 * _MIB
