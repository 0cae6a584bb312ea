"""Deadlines inside uvicorn, for peers that send half a request or keep sending after the answer.

uvicorn bounds the size of headers itself, and ``requests`` bounds bodies; but uvicorn waits for
both without limit. Its protocol class is chosen before it loads the application, so this module
cannot replace the class: it adds calls to the class's methods.
"""

import asyncio
from collections.abc import Callable
from enum import Enum, auto
from functools import wraps
from importlib.util import find_spec
from typing import Any, Final

import h11
from django.core.exceptions import ImproperlyConfigured

from config.edge import bounds
from controller_client.protocol.limits import MAX_FRAME_BYTES
from projects.conf import conf

_OTHER_PARSER: Final = "httptools"
_READ_BYTES: Final = 32 * 1024
_WATCH: Final = "_holdline_watch"


class _Phase(Enum):
    """The state of a connection; each has a deadline of its own, ANSWERING has none."""

    IDLE = auto()
    REQUEST = auto()
    ANSWERING = auto()
    CLOSING = auto()
    UNREAD = auto()


class _Watch:
    """The deadline of one connection, restarted with each change of its phase."""

    def __init__(self, protocol: Any) -> None:
        self._protocol = protocol
        self._phase = _Phase.ANSWERING
        self._timer: asyncio.TimerHandle | None = None
        self._full_timer: asyncio.TimerHandle | None = None
        self._untaken = bounds.Untaken()
        self._dropped_bytes = self._body_bytes = self._chunks = 0
        self._is_left = False
        self._parse: Callable[[], Any] = protocol.conn.next_event

    def made(self) -> None:
        """Start with an idle connection, and bound what is read ahead of authentication."""
        # No command line may change these: 0 (any size) or 16 MiB would be read from anybody.
        self._protocol.config.ws_max_size = MAX_FRAME_BYTES
        self._protocol.config.ws_per_message_deflate = False
        # Bytes that were read before the application asks for them are counted nowhere. With
        # asyncio's 256 KiB they would be the larger part of what unfinished requests hold.
        if hasattr(self._protocol.transport, "max_size"):
            self._protocol.transport.max_size = _READ_BYTES
        self._protocol.conn.next_event = self._next_event
        self._enter(_Phase.IDLE, conf.idle_seconds)

    def received(self, size: int) -> None:
        """Note that ``size`` bytes arrived.

        The first byte of a request starts its deadline; later bytes do not move it.
        """
        if self._is_unread():
            self._drop(size)
            self._enter(_Phase.UNREAD, bounds.LINGER_SECONDS)
        elif self._is_under_way():
            self._await_rest()
        else:
            self.over()

    def _next_event(self) -> Any:
        """Parse the next part of a request; refuse a body that is cut into too many chunks."""
        event = self._parse()
        if isinstance(event, h11.Data):
            self._body_bytes += len(event.data)
            self._chunks += event.chunk_start
            if bounds.are_too_many(self._chunks, self._body_bytes):
                self._refuse(bounds.UNREADABLE)
                return h11.NEED_DATA
        elif isinstance(event, h11.Request):
            self._body_bytes = self._chunks = 0
        return event

    def _refuse(self, status: int) -> None:
        """Answer in place of the application, then drop what comes for a moment."""
        protocol = self._protocol
        if protocol.conn.states[h11.SERVER] is h11.SEND_RESPONSE:
            protocol.transport.write(bounds.refusal_bytes(status))
        # The application is told that its peer has gone, and sends nothing any more.
        protocol.cycle.disconnected = True
        protocol.cycle.message_event.set()
        if protocol.transport.can_write_eof():
            protocol.transport.write_eof()
        protocol.transport.resume_reading()
        protocol.data_received = lambda data: self._drop(len(data))
        self._enter(_Phase.UNREAD, bounds.LINGER_SECONDS)
        # Nothing moves this deadline.
        self._is_left = True

    def _drop(self, size: int) -> None:
        self._dropped_bytes += size
        if self._dropped_bytes > bounds.LINGER_BYTES:
            self._protocol.transport.abort()

    def answered(self) -> None:
        """Note that an answer is complete; the next request may have begun before it."""
        if self._is_unread():
            self._enter(_Phase.UNREAD, bounds.LINGER_SECONDS)
        elif self._is_under_way():
            self._await_rest()
        elif self._protocol.transport.is_closing():
            self._enter(_Phase.CLOSING, conf.idle_seconds)

    def full(self) -> None:
        """Start the deadline of a peer that takes nothing of its answer."""
        self._full_timer = self._protocol.loop.call_later(conf.idle_seconds, self._look)

    def taken(self) -> None:
        """Stop that deadline: the peer has taken most of what was sent."""
        if self._full_timer is not None:
            self._full_timer.cancel()
            self._full_timer = None

    def gone(self) -> None:
        """Stop both deadlines with the connection."""
        self.over()
        self.taken()

    def over(self) -> None:
        """Stop the deadline: the request is being answered, or the connection is gone."""
        self._phase = _Phase.ANSWERING
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def left(self) -> None:
        """Stop watching for good: the connection is a WebSocket from now on.

        It never is one if its parser, which is stricter than the one of requests, cannot read the
        handshake. uvicorn would neither answer nor close it, and read on for as long as it lasts.
        """
        self._is_left = True
        self.gone()
        transport = self._protocol.transport
        if not getattr(transport.get_protocol(), "handshake_initiated", True):
            self._close(transport, bounds.UNREADABLE)

    def _is_under_way(self) -> bool:
        states = self._protocol.conn.states
        return (
            states[h11.CLIENT] in {h11.IDLE, h11.SEND_BODY} and states[h11.SERVER] is not h11.DONE
        )

    def _await_rest(self) -> None:
        """Wait for the rest of a request that has begun, else for the first byte of the next."""
        conn = self._protocol.conn
        # A head that is not whole is kept as bytes, and does not change the state.
        if conn.states[h11.CLIENT] is h11.SEND_BODY or conn.trailing_data[0]:
            self._enter(_Phase.REQUEST, conf.request_seconds)
        else:
            self._enter(_Phase.IDLE, conf.idle_seconds)

    def _is_unread(self) -> bool:
        states = self._protocol.conn.states
        return states[h11.CLIENT] is h11.SEND_BODY and states[h11.SERVER] is h11.DONE

    def _enter(self, phase: _Phase, seconds: float) -> None:
        if self._phase is phase or self._is_left:
            return
        self.over()
        self._phase = phase
        self._timer = self._protocol.loop.call_later(seconds, self._end)

    def _look(self) -> None:
        if self._is_taking():
            self.full()
        else:
            self._protocol.transport.abort()

    def _is_taking(self) -> bool:
        return self._untaken.is_less(self._protocol.transport.get_extra_info("socket"))

    def _end(self) -> None:
        transport = self._protocol.transport
        if self._phase in {_Phase.IDLE, _Phase.CLOSING} and self._is_taking():
            self._timer = self._protocol.loop.call_later(conf.idle_seconds, self._end)
            return
        if self._phase is _Phase.REQUEST and self._protocol.conn.states[h11.SERVER] in {
            h11.IDLE,
            h11.SEND_RESPONSE,
        }:
            self._close(transport, bounds.TOO_SLOW)
        else:
            self._close(transport)

    def _close(self, transport: Any, status: int | None = None) -> None:
        if status is not None:
            transport.write(bounds.refusal_bytes(status))
        transport.close()
        self._protocol.loop.call_later(bounds.CLOSE_SECONDS, transport.abort)


def install() -> None:
    """Watch all connections of this process.

    Raises ImproperlyConfigured if uvicorn would use another HTTP parser than h11.
    """
    if find_spec(_OTHER_PARSER) is not None:
        raise ImproperlyConfigured(
            f"uninstall {_OTHER_PARSER}: uvicorn would use it, and unfinished requests are "
            "bounded in h11 only"
        )
    from uvicorn.protocols.http.h11_impl import H11Protocol
    from uvicorn.server import Server

    start = Server.startup

    @wraps(start)
    async def startup(self: Any, *arguments: Any, **options: Any) -> None:
        self.config.backlog = max(self.config.backlog, bounds.BACKLOG)
        await start(self, *arguments, **options)

    def made(self: Any, _transport: Any) -> None:
        watch = _Watch(self)
        setattr(self, _WATCH, watch)
        watch.made()

    Server.startup = startup  # type: ignore[method-assign]
    _after(H11Protocol, "connection_made", made)
    _after(
        H11Protocol, "data_received", lambda self, data: getattr(self, _WATCH).received(len(data))
    )
    _after(H11Protocol, "on_response_complete", lambda self: getattr(self, _WATCH).answered())
    _after(H11Protocol, "connection_lost", lambda self, _error: getattr(self, _WATCH).gone())
    _after(H11Protocol, "pause_writing", lambda self: getattr(self, _WATCH).full())
    _after(H11Protocol, "resume_writing", lambda self: getattr(self, _WATCH).taken())
    _after(
        H11Protocol, "handle_websocket_upgrade", lambda self, _event: getattr(self, _WATCH).left()
    )


def _after(owner: Any, name: str, then: Callable[..., None]) -> None:
    original = getattr(owner, name)

    @wraps(original)
    def both(self: Any, *arguments: Any) -> None:
        original(self, *arguments)
        then(self, *arguments)

    setattr(owner, name, both)
