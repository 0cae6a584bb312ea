"""One connection of Daphne: every request has a deadline, and an answer waits for its peer.

twisted.web waits for a request for as long as a byte arrives now and then. Daphne takes an answer
as fast as the application makes it, and keeps all of it; here a part of it waits until its peer has
taken the ones before.
"""

import asyncio
from contextlib import suppress
from typing import Any

from twisted.internet import reactor
from twisted.protocols.basic import LineReceiver
from twisted.web import http

from config.edge import bounds
from projects.conf import conf


class Channel(http.HTTPChannel):
    """One connection of HTTP/1.1. A request that is refused is its last one."""

    abortTimeout = bounds.CLOSE_SECONDS
    is_refused = False
    _is_under_way = False
    _dropped_bytes = 0
    _deadline: float | None = None
    _timer: Any = None
    _room: asyncio.Future[None] | None = None
    seconds = staticmethod(reactor.seconds)
    """The clock of ``callLater``."""

    def __init__(self) -> None:
        super().__init__()
        self._untaken = bounds.Untaken()

    def dataReceived(self, data: bytes) -> None:
        """Start the deadline of a request with its first byte; later bytes do not move it."""
        if self.is_refused:
            self._drop(data)
            return
        is_first = not self._is_under_way and not self._handlingRequest
        self._is_under_way |= is_first
        LineReceiver.dataReceived(self, data)
        # Most requests arrive whole, and need no deadline.
        if is_first and self._is_under_way and not self.is_refused:
            self.setTimeout(conf.request_seconds)

    def rawDataReceived(self, data: bytes) -> None:
        """Drop what follows a refused request in the buffer: it belongs to no request."""
        if self.is_refused:
            self._drop(data)
            return
        with suppress(bounds.Refused):
            super().rawDataReceived(data)
        if self._handlingRequest and self.is_full():
            # The library reads on for as long as an answer waits for its peer, and keeps it all.
            self._networkProducer.pauseProducing()

    def is_full(self) -> bool:
        """True while the connection holds more of its answers than it should, for a slow peer."""
        return bool(self._waitingForTransport)

    async def room(self) -> None:
        """Wait until the peer has taken what was sent; cut it off if that takes too long."""
        while self.is_full():
            self._room = asyncio.get_running_loop().create_future()
            try:
                async with asyncio.timeout(conf.idle_seconds):
                    await self._room
            except TimeoutError:
                # The peer may have taken all, or hung up, at the same moment.
                if self.is_full() and not self._is_taking():
                    self.transport.abortConnection()
                    return

    def resumeProducing(self) -> None:
        """Let the answer go on: the peer has taken all of it so far."""
        super().resumeProducing()
        self._make_room()

    def requestDone(self, request: Any) -> None:
        """End a request. A last answer has a deadline too: its connection closes behind it."""
        is_last = not self.persistent
        super().requestDone(request)
        if is_last:
            self.setTimeout(conf.idle_seconds)

    def headerReceived(self, line: bytes) -> bool:
        """Refuse a Content-Length of thousands of digits, which Python does not parse."""
        try:
            return bool(super().headerReceived(line))
        except ValueError:
            self._respondToBadRequestAndDisconnect()
            return False

    def allContentReceived(self) -> None:
        """End the deadline of a complete request: its answer may take any time.

        The library starts the idle time set here when the answer is sent.
        """
        if self.is_refused:
            return
        self._is_under_way = False
        self.setTimeout(conf.idle_seconds)
        super().allContentReceived()

    def timeoutConnection(self) -> None:
        """Close the connection; a peer in the middle of a request is told why."""
        if self.is_refused:
            self.forceAbortClient()
            return
        if not self._is_under_way and self._is_taking():
            self.setTimeout(conf.idle_seconds)
            return
        if self._is_under_way:
            self.transport.write(bounds.refusal_bytes(bounds.TOO_SLOW))
        super().timeoutConnection()

    def setTimeout(self, period: float | None) -> float | None:
        """Set the deadline, or none; return the period that was set before.

        A timer that ends before the deadline is kept and looks again: each request moves the
        deadline three times, and a timer costs more than a request's headers. A timer that ends
        after the deadline is replaced: moving it forward would make the reactor search the timers
        of all connections.
        """
        before: float | None = self.timeOut  # type: ignore[has-type] # of an untyped library
        self.timeOut = period
        self._deadline = None if period is None else self.seconds() + period
        self._ensure_timer()
        return before

    def resetTimeout(self) -> None:
        """Keep the deadline: a byte now and then does not move it."""

    def connectionLost(self, reason: object) -> None:
        """End the timer, which would keep this object."""
        super().connectionLost(reason)
        if self._timer is not None and self._timer.active():
            self._timer.cancel()
        self._waitingForTransport = False
        self._make_room()

    def _is_taking(self) -> bool:
        return self._untaken.is_less(self.transport.getHandle())

    def _make_room(self) -> None:
        if self._room is not None and not self._room.done():
            self._room.set_result(None)

    def _ensure_timer(self) -> None:
        if self._deadline is None:
            return
        if self._timer is not None:
            if self._timer.getTime() <= self._deadline:
                return
            self._timer.cancel()
        self._timer = self.callLater(self._deadline - self.seconds(), self._look_at_deadline)

    def _look_at_deadline(self) -> None:
        self._timer = None
        if self._deadline is not None and self._deadline <= self.seconds():
            self._deadline = None
            self.timeoutConnection()
        else:
            self._ensure_timer()

    def refuse(self, status: int) -> None:
        """Answer at once, close the sending half, and drop input until the peer closes its half."""
        if self.is_refused:
            return
        self.is_refused = True
        self.transport.write(bounds.refusal_bytes(status))
        self._networkProducer.unregisterProducer()
        self._networkProducer.resumeProducing()
        self.transport.loseWriteConnection()
        self.setTimeout(bounds.LINGER_SECONDS)

    def _send100Continue(self) -> None:
        if not self.is_refused:
            super()._send100Continue()

    def _drop(self, data: bytes) -> None:
        self._dropped_bytes += len(data)
        if self._dropped_bytes > bounds.LINGER_BYTES:
            self.transport.abortConnection()
