"""The WebSocket of a controller: frames in, frames out.

This file owns the connection and its tasks. ``projects.link.inbound`` decides what a frame means.
The commands that are sent come from the outbox (``projects.sessions.outbox``). One connection is
the following tasks, which end together (docs/processes-and-tasks.md):

* ``receive`` is called by Channels for every frame. It decodes the frame, checks the window and
  puts the frame into a queue. It never waits: Daphne has no backpressure and would pile up frames
  in memory behind a handler that waits.
* the writer commits and acknowledges the queued frames (``projects.link.frame_writer``);
* the asker sends questions about files when its doorbell rings (``projects.link.file_asker``); an
  answer to a question that nobody asked breaks the protocol;
* the sender sends commands from the outbox when the controller's doorbell rings
  (``projects.link.command_sender``). The reconciler of the process rings again for doorbells that
  were missed;
* the heartbeat pings, renews the lease, and notices a silent peer or a revoked credential;
* the finisher compares the digests of finished streams before the host may forget them
  (``projects.link.frame_writer``);
* the watch for twins ends the sessions that HELLO did not name, once the connection has lasted for
  a lease (``projects.link.inbound.twins``);
* the echo timer measures how long a terminal of the host takes to echo
  (``projects.link.echo_timer``);
* the leaver sends the host to another process when this process is being stopped. The host sends
  everything that is not committed by then again, to that process.
"""

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any, Final
from weakref import WeakSet

import msgspec
from channels.exceptions import StopConsumer
from channels.generic.websocket import AsyncWebsocketConsumer
from structlog.contextvars import bind_contextvars

from controller_client.protocol import codec
from controller_client.protocol.errors import ProtocolError, RemoteProtocolError
from controller_client.protocol.limits import CloseCode
from controller_client.protocol.messages import (
    Draining,
    Error,
    FileChunk,
    FileDeleted,
    FilesNamed,
    FromController,
    Hello,
    InteractiveOutput,
    Message,
    Ping,
    Pong,
)
from controller_client.protocol.resume import ReceiveWindow
from projects.accounts.errors import RateLimited
from projects.conf import conf
from projects.errors.access import Unauthenticated
from projects.errors.base import Forbidden
from projects.errors.server import StorageUnavailable
from projects.link.admission import admit
from projects.link.command_sender import CommandSender
from projects.link.echo_timer import EchoTimer
from projects.link.file_asker import FileAsker
from projects.link.frame_writer import FrameWriter
from projects.link.inbound import hello as greeting
from projects.link.inbound.connection_memory import ConnectionMemory
from projects.link.inbound.leases import Lease
from projects.link.inbound.refusals import Declined, Fenced, HelloExpected, HelloLate, first_of
from projects.link.inbound.twins import TwinWatch
from projects.link.lease_keeper import HeldLease
from projects.process import draining, metrics
from projects.wakeups import doorbells

logger = logging.getLogger(__name__)

PONG_INTERVAL_SECONDS: Final = 0.1

_windows: WeakSet[ReceiveWindow] = WeakSet()


def unacknowledged_bytes() -> int:
    """The bytes of output that this process has received and not yet committed."""
    return sum(window.in_flight_bytes for window in _windows)


class PeerSilent(Exception):
    """The peer sent nothing for ``conf.dead_after_seconds``."""


class ConnectionDrained(Exception):
    """The process is being stopped, and this connection is the next to be closed."""


class ControllerConsumer(AsyncWebsocketConsumer):  # type: ignore[misc] # channels is untyped
    """One WebSocket connection of one controller, from its opening to its end."""

    # Doorbells are heard through doorbells.Doorbell. Channels' own receive loop would close the
    # socket on an error of the channel layer.
    channel_layer_alias = "none"

    async def __call__(
        self,
        scope: dict[str, Any],
        receive: Callable[[], Awaitable[Any]],
        send: Callable[[Any], Awaitable[None]],
    ) -> None:
        """Run until the socket is closed.

        Daphne cancels this call on shutdown and does not call ``disconnect``, so all tasks of the
        connection have to end here.
        """
        self._life: asyncio.Task[None] | None = None
        self._records: list[asyncio.Task[None]] = []
        try:
            await super().__call__(scope, receive, send)
        finally:
            if self._life is not None:
                self._life.cancel()
                await asyncio.gather(self._life, return_exceptions=True)
                await self._held.settle()
            await asyncio.gather(*self._records)

    async def dispatch(self, message: dict[str, Any]) -> None:
        """Call the handler of a message, without the thread that Channels uses for it.

        Channels closes old database connections in its one thread-sensitive thread first. No
        handler here uses a database connection.
        """
        await getattr(self, message["type"].replace(".", "_"))(message)

    # ---- opening and closing ---------------------------------------------------------------------

    async def connect(self) -> None:
        """Accept a daemon with a valid credential; refuse all others before the handshake ends."""
        self._epoch, self._is_closing = 0, False
        if draining.has_begun():
            await self._turn_away(Draining(reason="the server is stopping"))
            return
        try:
            self._controller_id, self._credential_id = await admit(self.scope)
        except (Forbidden, Unauthenticated, RateLimited) as error:
            await self._deny(error.status)
            return
        except StorageUnavailable as error:
            await self._turn_away(Error(code=error.code, message=str(error)))
            return
        bind_contextvars(controller_id=str(self._controller_id))
        self._window = ReceiveWindow()
        _windows.add(self._window)
        self._heard_at = time.monotonic()
        self._ponged_at = 0.0
        self._memory = ConnectionMemory()
        self._files = FileAsker(self._controller_id, self._send)
        self._writer = FrameWriter(
            self._controller_id,
            window=self._window,
            memory=self._memory,
            files=self._files,
            send=self._send,
        )
        self._twin = TwinWatch(self._controller_id, self._send)
        self._echo = EchoTimer(self._controller_id, self._send)
        self._held = HeldLease(self._controller_id, self._credential_id)
        self._has_greeted = False
        self._stopping = asyncio.Event()
        await self.accept()
        self._life = asyncio.create_task(self._live(), name=f"controller {self._controller_id}")

    async def websocket_disconnect(self, message: dict[str, Any]) -> None:
        """The socket is gone: ``__call__`` ends the tasks.

        The host stays online until its lease expires.
        """
        if self._life is not None:
            logger.info("controller %s disconnected (%s)", self._controller_id, message.get("code"))
        raise StopConsumer

    async def _turn_away(self, why: Error | Draining) -> None:
        """Ask the host to connect again soon: accept the connection, and close it with a reason.

        Daphne can refuse only with 403, after which a host stays away for minutes.
        """
        self._is_closing = True
        await self.accept()
        await self._send(why)
        await self.close(CloseCode.GOING_AWAY)

    async def _deny(self, status: int) -> None:
        if "websocket.http.response" in self.scope.get("extensions", {}):
            await self.base_send(
                {
                    "type": "websocket.http.response.start",
                    "status": status,
                    "headers": [(b"content-length", b"0")],
                }
            )
            await self.base_send({"type": "websocket.http.response.body", "body": b""})
        else:
            # Daphne turns this into its only refusal, 403.
            await self.close()

    async def _shut(self, close_code: int, code: str, text: str) -> None:
        """Send ERROR, then close: a close code alone does not say what was wrong."""
        if self._is_closing:
            return
        self._is_closing = True
        await self._send(Error(code=code, message=text))
        # The code is one of the protocol's own. Daphne's WebSocket library refuses to send 1001 or
        # 1011, and would leave the socket open.
        await self.close(close_code)

    async def _send(self, message: Message) -> None:
        if self._epoch and not message.epoch:
            message = msgspec.structs.replace(message, epoch=self._epoch)
        await self.send(text_data=codec.encode(message).decode())

    # ---- receiving -------------------------------------------------------------------------------

    async def receive(self, text_data: str | None = None, bytes_data: bytes | None = None) -> None:
        """Decode, check and queue a frame. Only the ERROR before a close is waited for."""
        if self._is_closing:
            return
        self._heard_at = time.monotonic()
        try:
            message = codec.decode_from_controller.decode(
                text_data if text_data is not None else bytes_data or b""
            )
            self._accept_frame(message)
        except ProtocolError as error:
            await self._refuse(error)
        else:
            if isinstance(message, Ping):
                await self._answer_ping(message)
            elif isinstance(message, Pong):
                self._twin.heard(message)
                self._echo.heard(message)

    def _accept_frame(self, message: FromController) -> None:
        if isinstance(message, Hello) == self._has_greeted:
            raise HelloExpected
        self._has_greeted = True
        if isinstance(message, InteractiveOutput):
            self._window.received(message.session_id, len(message.data))
        if isinstance(message, FileChunk | FileDeleted | FilesNamed):
            self._files.check(message)
        if isinstance(message, Draining):
            self._held.give_up()
        elif not isinstance(message, (Ping, Pong)):
            self._writer.frames.put(message)

    async def _answer_ping(self, ping: Ping) -> None:
        """Answer at once: the peer must not take a slow database for a dead server.

        A flood of PINGs is not answered one by one.
        """
        if self._heard_at - self._ponged_at >= PONG_INTERVAL_SECONDS:
            self._ponged_at = self._heard_at
            await self._send(Pong(reply_to=ping.id))

    async def _refuse(self, error: ProtocolError) -> None:
        """Close the connection of a peer that broke the protocol, or that may not go on.

        A violation of the protocol is put on record.
        """
        close_code = (
            error.close_code if isinstance(error, RemoteProtocolError) else CloseCode.INTERNAL_ERROR
        )
        logger.warning("connection of controller %s closed: %s", self._controller_id, error)
        if isinstance(error, RemoteProtocolError) and not isinstance(error, Declined):
            metrics.VIOLATIONS.inc()
            # A task of its own: a peer that hangs up now ends this call, but not the record.
            self._records.append(
                asyncio.create_task(greeting.violation_recorded(self._controller_id, error.code))
            )
        if isinstance(error, Fenced):
            await self._twin.look()
        await self._shut(close_code, error.code, str(error))

    # ---- living ----------------------------------------------------------------------------------

    async def _live(self) -> None:
        """Handle HELLO, then run the loops until one ends the connection. Raises no exception."""
        with draining.announced_to(self._stopping):
            await self._serve()

    async def _serve(self) -> None:
        try:
            await self._greet()
            async with asyncio.TaskGroup() as loops:
                for loop in (
                    self._writer.write,
                    self._sender.send_commands,
                    self._files.ask,
                    self._beat,
                    self._writer.finish,
                    self._twin.miss,
                    self._echo.measure,
                    self._leave,
                ):
                    loops.create_task(loop(), name=f"{loop.__name__} {self._controller_id}")
        except ProtocolError as error:
            await self._refuse(error)
        except StorageUnavailable as error:
            await self._shut(CloseCode.GOING_AWAY, error.code, str(error))
        except ExceptionGroup as group:
            await self._end_with(group)
        except Exception:
            logger.exception("the connection of controller %s failed", self._controller_id)
            await self._shut(CloseCode.INTERNAL_ERROR, "INTERNAL_ERROR", "the server failed")

    async def _end_with(self, group: ExceptionGroup[Exception]) -> None:
        """Close with the first error that says something to the peer, if several loops failed."""
        first = first_of(group)
        if isinstance(first, ProtocolError):
            await self._refuse(first)
        elif isinstance(first, ConnectionDrained):
            self._is_closing = True
            await self._send(Draining(reason="the server is stopping"))
            await self.close(CloseCode.GOING_AWAY)
        elif isinstance(first, PeerSilent):
            await self._shut(CloseCode.GOING_AWAY, "PEER_SILENT", "nothing was heard for too long")
        else:
            logger.error(
                "the connection of controller %s failed", self._controller_id, exc_info=first
            )
            await self._shut(CloseCode.INTERNAL_ERROR, "INTERNAL_ERROR", "the server failed")

    async def _greet(self) -> None:
        message = await self._first_frame()
        if not isinstance(message, Hello):
            raise HelloExpected
        welcome, missing = await self._held.begin(message)
        self._epoch = self._files.epoch = self._writer.epoch = welcome.epoch
        lease = Lease(self._controller_id, self._epoch, self._credential_id)
        self._sender = CommandSender(lease, memory=self._memory, send=self._send)
        self._memory.greeted(message, welcome, missing.unnamed)
        # The host was told to end or to forget these sessions, so its later frames about them are
        # dropped.
        self._writer.dismissed = {
            directive.session_id for directive in welcome.sessions if not directive.expected
        }
        await self._send(welcome)
        metrics.HELLOS.inc()
        if self._epoch > 1:
            metrics.RECONNECTS.inc()
        logger.info("controller %s connected, epoch %d", self._controller_id, self._epoch)
        self._twin.greeted(self._epoch, missing.unnamed)
        for session_id in missing.lost:
            await doorbells.ring_session(session_id)
        # This makes an older connection of the controller find out at once that it was replaced.
        await doorbells.ring_controller(self._controller_id)
        await doorbells.ring_return(self._controller_id)

    async def _first_frame(self) -> FromController:
        # The deadline has two halves: if this process itself was paused during the first one, it
        # reads in the second one what came meanwhile.
        for _ in range(2):
            with suppress(TimeoutError):
                async with asyncio.timeout(conf.hello_deadline_seconds / 2):
                    return await self._writer.frames.get()
        raise HelloLate

    # ---- heartbeat and leaving -------------------------------------------------------------------

    async def _beat(self) -> None:
        while True:
            await asyncio.sleep(conf.heartbeat_seconds)
            if time.monotonic() - self._heard_at > conf.dead_after_seconds:
                raise PeerSilent
            await self._send(Ping())
            try:
                await self._held.renew()
            except StorageUnavailable:
                logger.error(
                    "the lease of controller %s cannot be renewed now", self._controller_id
                )

    async def _leave(self) -> None:
        await self._stopping.wait()
        await asyncio.sleep(draining.delay())
        raise ConnectionDrained
