"""Bounds inside Daphne, on what it reads from a peer that is not authenticated yet.

Daphne's web library, twisted.web, reads a whole body before it calls the application, and waits for
as long as a byte arrives now and then. These classes refuse a large body while it arrives, and read
nothing from a WebSocket until its handshake is answered; their channel has the deadlines. They also
set the options that the product needs, so that every way to start Daphne serves the same.
"""

import time
from collections.abc import Awaitable, Callable
from functools import partial
from io import BytesIO
from typing import Any, Final

from autobahn.twisted import websocket
from autobahn.websocket import protocol as websocket_protocol
from daphne import http_protocol, server, ws_protocol
from twisted.internet import reactor
from twisted.internet.endpoints import serverFromString
from twisted.web import http

from config.edge import bounds
from config.edge.daphne_channel import Channel
from config.edge.requests import parts, repeated_header
from controller_client.protocol.limits import HEARTBEAT_SECONDS, MAX_FRAME_BYTES
from projects.conf import conf

_ROOT_PATH: Final = b"Daphne-Root-Path"


class Request(http_protocol.WebRequest):
    """One request with a bounded body, kept in memory.

    Forms are parsed by Django alone: a form parsed here too would be in memory twice.
    """

    # Daphne looks each request up many times, and its own functions are written in Python.
    __hash__ = object.__hash__
    __eq__ = object.__eq__

    def __init__(self, *arguments: object) -> None:
        self._body_bytes = self._chunks = 0
        self._is_in_chunks = False
        super().__init__(*arguments, parsePOSTFormSubmission=False)

    def gotLength(self, length: int | None) -> None:
        """Refuse a body that is announced too large; None announces chunks of any length."""
        self.content = BytesIO()
        self._is_in_chunks = length is None
        if length is not None and length > conf.data_upload_max_memory_size:
            self.channel.refuse(bounds.TOO_LARGE)

    def handleContentChunk(self, data: bytes) -> None:
        """Take one part of the body, or refuse the request if the body is too large now.

        Raises Refused for a body that is cut into too many chunks.
        """
        if self.content.closed or self.channel is None or self.channel.is_refused:
            return
        self._body_bytes += len(data)
        self._chunks += self._is_in_chunks
        if bounds.are_too_many(self._chunks, self._body_bytes):
            self._refuse(bounds.UNREADABLE)
            raise bounds.Refused
        if self._body_bytes > conf.data_upload_max_memory_size:
            self._refuse(bounds.TOO_LARGE)
            return
        self.content.write(data)
        shown = self.requestHeaders.getRawHeaders(b"authorization", [b""])[0]
        bounds.HELD.grow(self, len(data), self._give_way, shown)

    def process(self) -> None:
        """Hand the request to the application, or the connection to its WebSocket."""
        bounds.HELD.complete(self)
        # This header would move the root of all paths; only the server's own options may.
        self.requestHeaders.removeHeader(_ROOT_PATH)
        if self.requestHeaders.hasHeader(b"Upgrade"):
            # Daphne repeats the handshake to autobahn's parser, which joins repeated headers and
            # takes a body for frames.
            repeated = repeated_header(
                (name.lower(), value)
                for name, values in self.requestHeaders.getAllRawHeaders()
                for value in values
            )
            if repeated or self._body_bytes:
                self.basic_error(
                    400, b"Bad Request", "This handshake repeats a header, or has a body"
                )
                return
        super().process()

    def basic_error(self, status: int, status_text: bytes, body: str) -> None:
        """Answer with an error, and let it be the last answer of the connection.

        It may be sent while the request is still being read. The library would then not see that
        the next request has begun behind it, and give that one the time of an idle connection.
        """
        if self.channel is not None:
            self.channel.persistent = False
            self.responseHeaders.setRawHeaders(b"Connection", [b"close"])
        super().basic_error(status, status_text, body)

    def handle_exception(self, exception: BaseException) -> None:
        """Answer 500, or cut off an answer that has begun: nobody may take it for a whole one.

        Daphne would answer twice. The error of that ended its check of all applications for good:
        the peer waited for ever, and no later request was ever forgotten.
        """
        if self._response_started:
            if self.channel is not None:
                self.channel.transport.abortConnection()
        else:
            super().handle_exception(exception)

    def finish(self) -> None:
        """End the request; its body no longer counts."""
        bounds.HELD.release(self)
        super().finish()

    def connectionLost(self, reason: object) -> None:
        """End the request of a peer that is gone; its body no longer counts."""
        bounds.HELD.release(self)
        super().connectionLost(reason)

    def _give_way(self) -> None:
        self._refuse(bounds.TOO_MANY)

    def _refuse(self, status: int) -> None:
        bounds.HELD.release(self)
        self.content.close()
        self.content = BytesIO()
        self.channel.refuse(status)


class WebSocketProtocol(ws_protocol.WebSocketProtocol):
    """One WebSocket, from which nothing is read until its handshake is answered."""

    last_ping = 0.0
    """The time of the last message, which Daphne sets by a clock that may jump."""
    _last_noted = _quiet_since = 0.0

    def check_timeouts(self) -> None:
        """Ping an open socket that is quiet. The WebSocket library ends handshakes that take long.

        Daphne's own check goes by a clock that may be set: after a jump ahead it refused handshakes
        that were under way, as if their credentials were wrong.
        """
        now = time.monotonic()
        if self.last_ping != self._last_noted:
            self._last_noted, self._quiet_since = self.last_ping, now
        elif self.state == self.STATE_OPEN and now - self._quiet_since > self.server.ping_interval:
            self._quiet_since = now
            self._sendAutoPing()

    def makeConnection(self, transport: Any) -> None:
        """Pause reading in the next turn of the event loop.

        In this turn, Daphne repeats the request to this protocol and then resumes the transport.
        """
        super().makeConnection(transport)
        reactor.callLater(0, self._hold)

    def _hold(self) -> None:
        if self.state == self.STATE_CONNECTING and hasattr(self, "handshake_deferred"):
            self.transport.pauseProducing()
            self.handshake_deferred.addBoth(self._go_on)

    def _go_on(self, outcome: Any) -> Any:
        self.transport.resumeProducing()
        return outcome


class WebSocketFactory(ws_protocol.WebSocketFactory):
    """Makes WebSockets whose frames and messages are bounded by the controllers' protocol."""

    protocol = WebSocketProtocol

    def setProtocolOptions(self, **options: Any) -> None:
        """Set the options, with sizes that no command line can change: 0 would mean any size."""
        super().setProtocolOptions(
            **{
                **options,
                "maxMessagePayloadSize": MAX_FRAME_BYTES,
                "maxFramePayloadSize": MAX_FRAME_BYTES,
            }
        )


class HTTPFactory(http_protocol.HTTPFactory):
    """Makes a channel for each connection, and sets the server options that the product needs."""

    def __init__(self, daphne: Any) -> None:
        super().__init__(daphne)
        # A controller's socket stays open while it answers PINGs. A call ends by itself or is
        # cancelled by its caller, so it needs no timeout here.
        daphne.websocket_timeout = -1
        daphne.ping_interval = daphne.ping_timeout = HEARTBEAT_SECONDS
        daphne.http_timeout = None
        daphne.application_close_timeout = 30
        daphne.server_name = ""
        daphne.handle_reply = partial(_replied, daphne.handle_reply)

    @staticmethod
    def protocol() -> Any:
        """A channel of ours in the wrapper that the library expects."""
        return http._GenericHTTPChannelProtocol(Channel())  # noqa: SLF001 - what its own factory makes

    def log(self, request: Any) -> None:
        """Write no access log, and format none: a turn would pay for each line."""

    def buildProtocol(self, address: Any) -> Any:
        """Build the protocol as Daphne does, with ``Request`` for its requests."""
        protocol = http.HTTPFactory.buildProtocol(self, address)
        protocol.requestFactory = Request
        protocol.timeOut = conf.idle_seconds
        return protocol


async def _replied(reply: Callable[..., Awaitable[None]], protocol: Any, message: Any) -> None:
    """Let Daphne ``reply``, each part when the connection has room for it."""
    if not isinstance(protocol, Request):
        await reply(protocol, message)
        return
    if "body" in message and (protocol.method == b"HEAD" or protocol.code in http.NO_BODY_CODES):
        # The library drops only the first part of a body that must not be sent.
        message = {**message, "body": b""}
    for part in parts(message):
        # Without a channel the request is over, and Daphne drops the part.
        channel = getattr(protocol, "channel", None)
        if channel is not None and channel.is_full():
            await channel.room()
        await reply(protocol, part)


def listening(clock: Any, description: str) -> Any:
    """The endpoint of a Twisted ``description``, with our backlog unless it names one.

    An inherited socket (``fd:``) listens already.
    """
    has_own = description.startswith("fd:") or ":backlog=" in description
    return serverFromString(
        clock, description if has_own else f"{description}:backlog={bounds.BACKLOG}"
    )


def _uncoloured(part: object) -> object:
    return part


def install() -> None:
    """Put these classes in the place of Daphne's own. Call this before Daphne listens."""
    server.serverFromString = listening
    server.HTTPFactory = HTTPFactory
    server.WebSocketFactory = WebSocketFactory
    # The WebSocket library colours the parts of a line for each message, which nobody logs.
    for module in (websocket, websocket_protocol):
        vars(module).update(hltype=_uncoloured, hlval=_uncoloured)
