"""Timeouts of Daphne's channels, and of its WebSockets."""

import asyncio
import time
from types import SimpleNamespace
from typing import Any

import pytest
from daphne import server
from twisted.internet.task import Clock
from twisted.internet.testing import StringTransport

from config.edge.daphne_channel import Channel
from config.edge.daphne_server import HTTPFactory, Request, WebSocketProtocol
from projects.conf import conf


class _Channel(Channel):
    """A channel on a clock of its own, which notes when its time is over."""

    def __init__(self) -> None:
        super().__init__()
        self.clock, self.ended_at = Clock(), list[float]()
        self.callLater, self.seconds = self.clock.callLater, self.clock.seconds

    def timeoutConnection(self) -> None:  # noqa: N802 - the library calls it so
        """Note the time."""
        self.ended_at.append(self.seconds())

    def timers(self) -> list[float]:
        """The times of the timers that run."""
        return [call.getTime() for call in self.clock.getDelayedCalls()]


@pytest.fixture
def channel() -> _Channel:
    return _Channel()


def test_a_shorter_timeout_replaces_a_longer_one(channel: _Channel) -> None:
    channel.setTimeout(60)
    longer = channel.clock.getDelayedCalls()[0]
    # Brought forward, the old one would have to be searched for among those of all connections.
    assert channel.setTimeout(10) == 60
    assert not longer.active()
    assert channel.timers() == [10]
    assert channel.setTimeout(None) == 10
    channel.clock.pump([10, 60])
    assert channel.ended_at == []
    assert channel.timers() == []


def test_a_later_deadline_needs_no_other_timer(channel: _Channel) -> None:
    channel.setTimeout(10)
    channel.clock.advance(4)
    channel.setTimeout(None)
    channel.setTimeout(10)
    assert channel.timers() == [10]
    channel.clock.advance(6)
    assert (channel.ended_at, channel.timers()) == ([], [14])
    channel.clock.advance(4)
    assert (channel.ended_at, channel.timers()) == ([14], [])


def test_a_lost_connection_leaves_no_timer(channel: _Channel) -> None:
    channel.setTimeout(60)
    channel.connectionLost(None)
    assert channel.timers() == []


@pytest.mark.parametrize("is_persistent", [False, True])
def test_a_connection_ends_after_its_last_answer_taken_or_not(is_persistent: bool) -> None:
    channel = _Channel()
    channel.makeConnection(StringTransport())
    channel.setTimeout(None)
    channel.persistent, channel._savedTimeOut = is_persistent, conf.idle_seconds
    channel.requests = [request := object()]
    channel.requestDone(request)
    channel.clock.advance(conf.idle_seconds)
    assert channel.ended_at == [conf.idle_seconds]


@pytest.mark.parametrize("has_begun", [False, True])
async def test_an_answer_that_fails_ends_and_so_does_no_check(
    has_begun: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    channel = Channel()
    channel.factory = HTTPFactory(daphne := server.Server(None, endpoints=["tcp:0"]))
    channel.makeConnection(transport := StringTransport())
    daphne.connections = {}
    request = Request(channel)
    request.application_queue = request.client_addr = None
    request.clientproto, request.method, request.uri = b"HTTP/1.1", b"GET", b"/"
    request.request_start = time.time()
    channel.requests = [request]
    if has_begun:
        request.handle_reply({"type": "http.response.start", "status": 200})
        request.handle_reply({"type": "http.response.body", "body": b"a part", "more_body": True})
    failed: asyncio.Future[None] = asyncio.get_running_loop().create_future()
    failed.set_exception(OSError("the database is away"))
    checks = list[Any]()
    daphne.connections[request]["application_instance"] = failed
    monkeypatch.setattr(server.reactor, "callLater", lambda *call: checks.append(call[1]))
    daphne.application_checker()
    assert daphne.application_checker in checks
    assert "application_instance" not in daphne.connections[request]
    assert (transport.disconnected, b"500 Internal" in transport.value()) == (
        has_begun,
        not has_begun,
    )


def _checked(state: int, clock_ahead: float) -> list[str]:
    """What is sent by a check of a WebSocket that was opened, is quiet, and has had a message.

    Its clock was set since it was opened.
    """
    socket, sent = WebSocketProtocol(), list[str]()
    socket.state = state
    socket.server = SimpleNamespace(
        websocket_timeout=-1, websocket_connect_timeout=20, ping_interval=-1
    )
    socket.socket_opened = socket.last_ping = time.time() - clock_ahead
    socket.serverReject = lambda: sent.append("403")
    socket._sendAutoPing = lambda: sent.append("ping")
    for step in ("opened", "quiet", "message"):
        socket.last_ping += step == "message"
        socket.check_timeouts()
        sent.append(step)
    return sent


def test_a_handshake_is_not_refused_because_the_clock_was_set() -> None:
    assert "403" not in _checked(WebSocketProtocol.STATE_CONNECTING, 3600)


@pytest.mark.parametrize("clock_ahead", [3600, -3600])
def test_a_quiet_socket_is_pinged_whatever_its_clock_says(clock_ahead: float) -> None:
    sent = _checked(WebSocketProtocol.STATE_OPEN, clock_ahead)
    assert sent == ["opened", "ping", "quiet", "message"]
