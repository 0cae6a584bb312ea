"""The controllers' socket: frames in, frames out. What they mean is decided by ``inbound``, what is sent by the outbox.

One connection is these tasks, all ended together (docs/tasks.md):

* ``receive`` (Channels calls it per frame) decodes, checks the window, queues. It waits for nothing, so that Daphne, which has no
  backpressure, cannot pile up frames behind it.
* the writer commits everything queued in one transaction, rings for the sessions that advanced, acknowledges, and hands ends to the
  finisher;
* the asker puts questions about files the same way, under a doorbell of their own; an answer nobody asked for is a violation;
* the outbox sends commands when the controller's doorbell rings; the safety net of the process rings for what was missed;
* the heartbeat pings, renews the lease, notices a dead peer and a revoked credential;
* the finisher compares digests of finished streams before the host may forget them;
* the leaver sends the host elsewhere when this process is being stopped. What is not committed by then is resent there.
"""

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any, Final, TypeGuard
from uuid import UUID
from weakref import WeakSet

import msgspec
from channels.exceptions import StopConsumer
from channels.generic.websocket import AsyncWebsocketConsumer
from structlog.contextvars import bind_contextvars

from controller_client.protocol import codec
from controller_client.protocol.errors import ProtocolError, RemoteProtocolError
from controller_client.protocol.limits import CloseCode
from controller_client.protocol.messages import (
    Ack,
    DoneAck,
    Draining,
    Error,
    FileChunk,
    FileDeleted,
    FromController,
    Gap,
    Hello,
    InputAck,
    InteractiveCmdDone,
    InteractiveOutput,
    Message,
    Ping,
    Pong,
    Stream,
    StreamOffset,
)
from controller_client.protocol.resume import ReceiveWindow
from projects import dispatch, draining, lease_keeper, metrics, output_log, safety_net
from projects.account_errors import RateLimited
from projects.admission import admit
from projects.conf import conf
from projects.database import at_length, in_database
from projects.errors import Forbidden, StorageUnavailable, Unauthenticated
from projects.file_asker import FileAsker
from projects.inbound import batch, commands, leases
from projects.inbound import hello as greeting
from projects.inbound.batch import BatchResult, SessionMessage
from projects.inbound.refusals import AwaitsApproval, HelloExpected, TooManyFrames

logger = logging.getLogger(__name__)

# Output is bounded by its window; this bounds everything else a peer may pile up.
MAX_QUEUED_FRAMES: Final = 2048
MAX_BATCH_FRAMES: Final = 256
# Nobody waits for an input to be acknowledged; if the connection dies meanwhile, the host acknowledges it again.
INPUT_ACK_WAIT_SECONDS: Final = 0.02
# Of the event loop, from one frame to the next that is there already: Channels has a queue and a task in between.
ROUNDS_PER_FRAME: Final = 4
VERIFY_AFTER_SECONDS: Final = 0.005
PONG_INTERVAL_SECONDS: Final = 0.1
STORAGE_RETRY_SECONDS: Final = 0.2
STORAGE_RETRY_MAX_SECONDS: Final = 2.0


_windows: WeakSet[ReceiveWindow] = WeakSet()


def unacknowledged_bytes() -> int:
    """Output that the connections of this process have received and not committed."""
    return sum(window.in_flight_bytes for window in _windows)


class PeerSilent(Exception):
    """Nothing was heard for ``conf.dead_after_seconds``."""


class Stopping(Exception):
    """The process is being stopped, and it is this connection's turn."""


class ControllerConsumer(AsyncWebsocketConsumer):  # type: ignore[misc] # channels is untyped
    """One connection of one controller."""

    # Doorbells are heard through dispatch.Doorbell: an error of the layer inside Channels' own receive would close the socket.
    channel_layer_alias = "none"

    async def __call__(self, scope: dict[str, Any], receive: Callable[[], Awaitable[Any]], send: Callable[[Any], Awaitable[None]]) -> None:
        """Runs until the socket is closed. Daphne cancels this on shutdown and calls no ``disconnect``: nothing may outlive it."""
        self._life: asyncio.Task[None] | None = None
        self._records: list[asyncio.Task[None]] = []
        try:
            await super().__call__(scope, receive, send)
        finally:
            if self._life is not None:
                self._life.cancel()
                await asyncio.gather(self._life, return_exceptions=True)
            await asyncio.gather(*self._records)

    async def dispatch(self, message: dict[str, Any]) -> None:
        """As Channels does it, without its hop through the one thread-sensitive thread per message: no handler here uses a connection."""
        await getattr(self, message["type"].replace(".", "_"))(message)

    # ---- opening and closing -------------------------------------------------------------------------------------------

    async def connect(self) -> None:
        """Accepts a daemon with a valid credential; everybody else is refused before the handshake ends."""
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
        self._frames: asyncio.Queue[FromController] = asyncio.Queue()
        self._dones: asyncio.Queue[InteractiveCmdDone] = asyncio.Queue()
        self._heard_at = time.monotonic()
        self._ponged_at = 0.0
        self._dismissed: set[str] = set()
        self._files = FileAsker(self._controller_id, self._send)
        self._has_greeted = False
        self._stopping = asyncio.Event()
        await self.accept()
        self._life = asyncio.create_task(self._live(), name=f"controller {self._controller_id}")

    async def websocket_disconnect(self, message: dict[str, Any]) -> None:
        """The socket is gone; ``__call__`` ends the tasks. The lease says who is online, not this."""
        if self._life is not None:
            logger.info("controller %s disconnected (%s)", self._controller_id, message.get("code"))
        raise StopConsumer

    async def _turn_away(self, why: Error | Draining) -> None:
        """To come again soon. Daphne's one refusal is 403, after which a host stays away for minutes: so accepted, and closed."""
        self._is_closing = True
        await self.accept()
        await self._send(why)
        await self.close(CloseCode.GOING_AWAY)

    async def _deny(self, status: int) -> None:
        if "websocket.http.response" in self.scope.get("extensions", {}):
            await self.base_send({"type": "websocket.http.response.start", "status": status, "headers": [(b"content-length", b"0")]})
            await self.base_send({"type": "websocket.http.response.body", "body": b""})
        else:
            # Daphne knows one refusal: 403.
            await self.close()

    async def _shut(self, close_code: int, code: str, text: str) -> None:
        """ERROR, then the close: a close code alone does not say what was wrong."""
        if self._is_closing:
            return
        self._is_closing = True
        await self._send(Error(code=code, message=text))
        # One of the protocol's own: with 1001 or 1011 Daphne's WebSocket library would refuse, and leave the socket open.
        await self.close(close_code)

    async def _send(self, message: Message) -> None:
        if self._epoch and not message.epoch:
            message = msgspec.structs.replace(message, epoch=self._epoch)
        await self.send(text_data=codec.encode(message).decode())

    # ---- receiving -----------------------------------------------------------------------------------------------------

    async def receive(self, text_data: str | None = None, bytes_data: bytes | None = None) -> None:
        """Decodes, checks, queues; waits for nothing but the ERROR before a close."""
        if self._is_closing:
            return
        self._heard_at = time.monotonic()
        try:
            message = codec.decode_from_controller.decode(text_data if text_data is not None else bytes_data or b"")
            self._accept_frame(message)
        except ProtocolError as error:
            await self._refuse(error)
        else:
            if isinstance(message, Ping):
                await self._answer_ping(message)

    def _accept_frame(self, message: FromController) -> None:
        if isinstance(message, Hello) == self._has_greeted:
            raise HelloExpected
        self._has_greeted = True
        if isinstance(message, InteractiveOutput):
            self._window.received(message.session_id, len(message.data))
        if isinstance(message, FileChunk | FileDeleted):
            self._files.check(message)
        if self._frames.qsize() >= MAX_QUEUED_FRAMES:
            raise TooManyFrames(MAX_QUEUED_FRAMES)
        if not isinstance(message, (Ping, Pong)):
            self._frames.put_nowait(message)

    async def _answer_ping(self, ping: Ping) -> None:
        """At once: the peer must not take a slow database for a dead server. A flood of them is not answered one by one."""
        if self._heard_at - self._ponged_at >= PONG_INTERVAL_SECONDS:
            self._ponged_at = self._heard_at
            await self._send(Pong(reply_to=ping.id))

    async def _refuse(self, error: ProtocolError) -> None:
        """The peer broke the protocol, or may not go on: say so, write it down, close."""
        close_code = error.close_code if isinstance(error, RemoteProtocolError) else CloseCode.INTERNAL_ERROR
        if isinstance(error, AwaitsApproval):
            await self._shut(close_code, error.code, str(error))
            return
        metrics.VIOLATIONS.inc()
        logger.warning("connection of controller %s closed: %s", self._controller_id, error)
        # Whoever hangs up now ends this task, and not the record.
        self._records.append(asyncio.create_task(greeting.violation_recorded(self._controller_id, error.code)))
        await self._shut(close_code, error.code, str(error))

    # ---- living --------------------------------------------------------------------------------------------------------

    async def _live(self) -> None:
        """HELLO, then the loops until one of them ends the connection. No exception leaves this."""
        with draining.announced_to(self._stopping):
            await self._serve()

    async def _serve(self) -> None:
        try:
            await self._greet()
            async with asyncio.TaskGroup() as loops:
                for loop in (self._write, self._send_commands, self._files.ask, self._beat, self._finish, self._leave):
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
        """Several loops may fail at once; the first one that says something to the peer counts."""
        first = _first_of(group)
        if isinstance(first, ProtocolError):
            await self._refuse(first)
        elif isinstance(first, Stopping):
            self._is_closing = True
            await self._send(Draining(reason="the server is stopping"))
            await self.close(CloseCode.GOING_AWAY)
        elif isinstance(first, PeerSilent):
            await self._shut(CloseCode.GOING_AWAY, "PEER_SILENT", "nothing was heard for too long")
        else:
            logger.error("the connection of controller %s failed", self._controller_id, exc_info=first)
            await self._shut(CloseCode.INTERNAL_ERROR, "INTERNAL_ERROR", "the server failed")

    async def _greet(self) -> None:
        try:
            async with asyncio.timeout(conf.hello_deadline_seconds):
                message = await self._frames.get()
        except TimeoutError:
            raise HelloExpected from None
        if not isinstance(message, Hello):
            raise HelloExpected
        welcome, lost = await in_database(greeting.hello, self._controller_id, message, self._credential_id)
        self._epoch = self._files.epoch = welcome.epoch
        self._lease = leases.Lease(self._controller_id, self._epoch, self._credential_id)
        # The host was told to end or to forget them: what it still says about them is of no interest.
        self._dismissed = {directive.session_id for directive in welcome.sessions if not directive.expected}
        await self._send(welcome)
        metrics.HELLOS.inc()
        if self._epoch > 1:
            metrics.RECONNECTS.inc()
        logger.info("controller %s connected, epoch %d", self._controller_id, self._epoch)
        for session_id in lost:
            await dispatch.ring_session(session_id)

    # ---- writer --------------------------------------------------------------------------------------------------------

    async def _write(self) -> None:
        while True:
            frames = await self._next_frames()
            messages = [frame for frame in frames if self._is_to_store(frame)]
            result = await self._stored(messages) if messages else BatchResult()
            for frame in frames:
                if isinstance(frame, InteractiveOutput):
                    self._window.committed(frame.session_id, len(frame.data))
                    metrics.OUTPUT_BYTES.inc(len(frame.data))
                elif isinstance(frame, Gap):
                    metrics.GAPS.labels(frame.reason).inc()
                    metrics.GAP_BYTES.inc(frame.to_offset - frame.from_offset)
            await self._report(result)
            for frame in frames:
                if not self._is_to_store(frame):
                    await self._answer(frame)

    async def _next_frames(self) -> list[FromController]:
        """Everything that waits, at least one. An input's acknowledgement waits a moment for the output it caused: one commit, not two."""
        frames = [await self._frames.get()]
        # What came in the same packet is on its way here.
        for _ in range(ROUNDS_PER_FRAME):
            await asyncio.sleep(0)
        self._drain_into(frames)
        if all(isinstance(frame, InputAck) and frame.failure is None for frame in frames):
            with suppress(TimeoutError):
                async with asyncio.timeout(INPUT_ACK_WAIT_SECONDS):
                    frames.append(await self._frames.get())
                self._drain_into(frames)
        return frames

    def _drain_into(self, frames: list[FromController]) -> None:
        while len(frames) < MAX_BATCH_FRAMES and not self._frames.empty():
            frames.append(self._frames.get_nowait())

    def _is_to_store(self, frame: FromController) -> TypeGuard[SessionMessage]:
        session_id = getattr(frame, "session_id", None)
        return session_id is not None and session_id not in self._dismissed

    async def _report(self, result: BatchResult) -> None:
        # Waiting callers first: the host can wait for its ACK.
        for session_id in result.rings:
            await dispatch.ring_session(session_id)
        if result.acks:
            await self._send(Ack(offsets=result.acks))
        if result.has_commands:
            await dispatch.ring_controller(self._controller_id)
        if result.forget:
            await self._send(DoneAck(session_ids=result.forget))
        for done in result.dones:
            self._dones.put_nowait(done)
        if result.error is not None:
            raise result.error

    async def _stored(self, messages: list[SessionMessage]) -> BatchResult:
        """Commits, for as long as it takes: without an ACK the window stops the sender, and the host keeps the output."""
        delay = STORAGE_RETRY_SECONDS
        while True:
            try:
                return await in_database(batch.commit_batch, self._controller_id, self._epoch, messages)
            except StorageUnavailable:
                logger.error("output of controller %s cannot be stored now", self._controller_id)
                await asyncio.sleep(delay)
                delay = min(delay * 2, STORAGE_RETRY_MAX_SECONDS)

    async def _answer(self, frame: FromController) -> None:
        """Frames that are about the connection, or about a session that was dismissed: acknowledged, so that the host gets done with it."""
        if isinstance(frame, Draining):
            await in_database(leases.release, self._controller_id, self._epoch)
        elif isinstance(frame, Error):
            logger.warning("controller %s reports %s", self._controller_id, frame.code[:64])
        elif isinstance(frame, InteractiveOutput):
            await self._send(Ack(offsets=[_end_of(frame.session_id, frame.stream, frame.offset + len(frame.data))]))
        elif isinstance(frame, Gap):
            await self._send(Ack(offsets=[_end_of(frame.session_id, frame.stream, frame.to_offset)]))
        elif isinstance(frame, InteractiveCmdDone):
            await self._send(DoneAck(session_ids=[frame.session_id]))
        elif isinstance(frame, FileChunk | FileDeleted):
            await self._files.hand_over(frame)

    # ---- outbox --------------------------------------------------------------------------------------------------------

    async def _send_commands(self) -> None:
        async with dispatch.controller_doorbell(self._controller_id) as bell:
            with safety_net.serving(self._controller_id, self._epoch):
                is_rung = False
                while True:
                    try:
                        if not await self._send_waiting() and is_rung:
                            # Rung for something else: a revocation, or a newer connection of the same controller.
                            await in_database(leases.check_standing, self._lease)
                    except StorageUnavailable:
                        logger.error("commands for controller %s cannot be read now: the safety net rings again", self._controller_id)
                    await bell.rung()
                    is_rung = True

    async def _send_waiting(self) -> int:
        """Sends what the outbox has; how many commands that were."""
        taken = 0
        while True:
            messages, ended = await in_database(commands.take_commands, self._controller_id, self._epoch)
            for message in messages:
                await self._send(message)
            for session_id in ended:
                await dispatch.ring_session(session_id)
            taken += len(messages) + len(ended)
            if len(messages) + len(ended) < commands.COMMANDS_PER_TAKE:
                return taken

    # ---- heartbeat and ends --------------------------------------------------------------------------------------------

    async def _beat(self) -> None:
        while True:
            await asyncio.sleep(conf.heartbeat_seconds)
            if time.monotonic() - self._heard_at > conf.dead_after_seconds:
                raise PeerSilent
            await self._send(Ping())
            try:
                await lease_keeper.renew(self._lease)
            except StorageUnavailable:
                logger.error("the lease of controller %s cannot be renewed now", self._controller_id)

    async def _leave(self) -> None:
        await self._stopping.wait()
        await asyncio.sleep(draining.delay())
        raise Stopping

    async def _finish(self) -> None:
        """Digests take a while on long streams; the host is told to forget only once they were compared."""
        while True:
            done = await self._dones.get()
            # Whoever waits for the end is answered first.
            await asyncio.sleep(VERIFY_AFTER_SECONDS)
            try:
                for stream in await at_length(output_log.verify, UUID(done.session_id), done.streams):
                    logger.error("the stored %s of session %s differs from what its host sent", stream, done.session_id)
            except StorageUnavailable:
                logger.error("the digest of session %s could not be compared", done.session_id)
            await self._send(DoneAck(session_ids=[done.session_id]))


def _end_of(session_id: str, stream: Stream, offset: int) -> StreamOffset:
    return StreamOffset(session_id=session_id, stream=stream, offset=offset)


def _first_of(group: ExceptionGroup[Exception]) -> Exception:
    """The first leaf; a protocol error before any other."""
    leaves = [leaf for error in group.exceptions for leaf in ([_first_of(error)] if isinstance(error, ExceptionGroup) else [error])]
    return next((leaf for leaf in leaves if isinstance(leaf, ProtocolError)), leaves[0])
