"""The writer of one connection: it commits the frames that a host sent and acknowledges them.

The writer takes everything that is queued and commits it in one transaction
(``projects.link.inbound.batch``). A commit costs far more than a row, and frames queue up while the
last commit runs: the busier the database, the larger the next batch, and the fewer the commits.

After the commit, and only then, waiting callers are woken and the host gets its ACK. A host keeps
what is not acknowledged and sends it again over its next connection, so a crash at any point loses
nothing. While the database is away the writer tries again and acknowledges nothing; the window
(``ReceiveWindow``) then stops the host.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Final, TypeGuard
from uuid import UUID

from controller_client.protocol.messages import (
    Ack,
    DoneAck,
    Error,
    FileChunk,
    FileDeleted,
    FilesNamed,
    FromController,
    Gap,
    InputAck,
    InteractiveCmdDone,
    InteractiveOutput,
    Message,
    Stream,
    StreamOffset,
)
from controller_client.protocol.resume import ReceiveWindow
from projects.errors.server import StorageUnavailable
from projects.link.file_asker import FileAsker
from projects.link.inbound import batch
from projects.link.inbound.batch import BatchResult, SessionMessage
from projects.link.inbound.connection_memory import ConnectionMemory
from projects.link.inbound.frame_queue import FrameQueue
from projects.output import log as output_log
from projects.process import metrics
from projects.storage.access import at_length, in_shared_transaction
from projects.wakeups import doorbells

logger = logging.getLogger(__name__)

MAX_BATCH_FRAMES: Final = 256
# The output that an input causes usually follows its acknowledgement within milliseconds. Nobody
# waits for the acknowledgement alone, and a host that loses the connection sends it again.
INPUT_ACK_WAIT_SECONDS: Final = 0.02
# Channels (4.x) puts a queue and a task between the socket and ``receive``, so a frame that came in
# the same packet as the one before needs this many rounds of the event loop to reach our queue.
# Without them each frame of such a packet would be committed by itself.
ROUNDS_PER_FRAME: Final = 4
VERIFY_AFTER_SECONDS: Final = 0.005
STORAGE_RETRY_SECONDS: Final = 0.2
STORAGE_RETRY_MAX_SECONDS: Final = 2.0


class FrameWriter:
    """Commits, reports and acknowledges the frames of one connection.

    ``frames`` is where received frames wait. ``epoch`` and ``dismissed`` are set once, after HELLO
    and before ``write`` runs. ``dismissed`` has the ids of sessions that WELCOME told the host to
    terminate or to forget: their frames are acknowledged and not stored.
    """

    def __init__(
        self,
        controller_id: UUID,
        *,
        window: ReceiveWindow,
        memory: ConnectionMemory,
        files: FileAsker,
        send: Callable[[Message], Awaitable[None]],
    ) -> None:
        self.frames = FrameQueue()
        self.epoch = 0
        self.dismissed: set[str] = set()
        self._dones: asyncio.Queue[InteractiveCmdDone] = asyncio.Queue()
        # The sessions in it. A host may tell an end again and again.
        self._finishing: set[str] = set()
        self._controller_id = controller_id
        self._window = window
        self._memory = memory
        self._files = files
        self._send = send

    async def write(self) -> None:
        """Commit batch after batch, for as long as the connection lives.

        Raises:
            RemoteProtocolError: if a frame of a batch broke the protocol. The frames before it are
                committed and acknowledged first.
            SessionNotNamed: if a frame is about a session that HELLO had to name. Nothing of its
                batch is committed.

        """
        while True:
            frames = await self._next_frames()
            self._memory.check(frames)
            messages = [
                self._memory.with_reason(frame) for frame in frames if self._is_to_store(frame)
            ]
            result = await self._store(messages) if messages else BatchResult()
            self._memory.committed(messages)
            self._count(frames)
            await self._report(result)
            for frame in frames:
                if not self._is_to_store(frame):
                    await self._answer(frame)

    async def finish(self) -> None:
        """Compare the digests of sessions that ended, and let the host forget these sessions.

        Comparing long streams takes a while, so this is a task of its own.
        """
        while True:
            done = await self._dones.get()
            # The callers that wait for the end are answered first.
            await asyncio.sleep(VERIFY_AFTER_SECONDS)
            try:
                for stream in await at_length(
                    output_log.verify, UUID(done.session_id), done.streams
                ):
                    logger.error(
                        "the stored %s of session %s differs from what its host sent",
                        stream,
                        done.session_id,
                    )
            except StorageUnavailable:
                # The host keeps its record of the end until then.
                logger.error("the digest of session %s cannot be compared now", done.session_id)
                await asyncio.sleep(STORAGE_RETRY_MAX_SECONDS)
                self._dones.put_nowait(done)
                continue
            self._memory.ended(done.session_id, done.streams)
            self._finishing.discard(done.session_id)
            await self._send(DoneAck(session_ids=[done.session_id]))

    async def _next_frames(self) -> list[FromController]:
        """Wait for a frame and return it with all frames behind it, at most MAX_BATCH_FRAMES."""
        frames = [await self.frames.get()]
        for _ in range(ROUNDS_PER_FRAME):
            await asyncio.sleep(0)
        frames += self.frames.take(MAX_BATCH_FRAMES - len(frames))
        if all(isinstance(frame, InputAck) and frame.failure is None for frame in frames):
            # Wait a moment for the output that the input caused: one commit then instead of two.
            with suppress(TimeoutError):
                async with asyncio.timeout(INPUT_ACK_WAIT_SECONDS):
                    frames.append(await self.frames.get())
                frames += self.frames.take(MAX_BATCH_FRAMES - len(frames))
        return frames

    def _is_to_store(self, frame: FromController) -> TypeGuard[SessionMessage]:
        """True for a frame about a session that the server still keeps."""
        session_id = getattr(frame, "session_id", None)
        return (
            session_id is not None
            and session_id not in self.dismissed
            and self._memory.is_expected(frame)
        )

    async def _store(self, messages: list[SessionMessage]) -> BatchResult:
        """Commit ``messages``, and try until the database takes them."""
        delay = STORAGE_RETRY_SECONDS
        while True:
            try:
                return await in_shared_transaction(
                    batch.commit_batch, self._controller_id, self.epoch, messages
                )
            except StorageUnavailable:
                logger.error("output of controller %s cannot be stored now", self._controller_id)
                await asyncio.sleep(delay)
                delay = min(delay * 2, STORAGE_RETRY_MAX_SECONDS)

    def _count(self, frames: list[FromController]) -> None:
        """Open the window again for what is committed, and count it for the metrics."""
        for frame in frames:
            if isinstance(frame, InteractiveOutput):
                self._window.committed(frame.session_id, len(frame.data))
                metrics.OUTPUT_BYTES.inc(len(frame.data))
            elif isinstance(frame, Gap):
                metrics.GAPS.labels(frame.reason).inc()
                # A host may name a gap that ends before it begins. The batch refuses that.
                metrics.GAP_BYTES.inc(max(0, frame.to_offset - frame.from_offset))

    async def _report(self, result: BatchResult) -> None:
        """Wake the callers, then acknowledge to the host: a host can wait longer than callers."""
        for session_id in result.rings:
            await doorbells.ring_session(session_id, besides=result.looked)
        if result.acks:
            self._memory.stored(result.acks)
            await self._send(Ack(offsets=result.acks))
        if result.has_commands:
            await doorbells.ring_controller(self._controller_id)
        if result.forget:
            await self._send(DoneAck(session_ids=result.forget))
        for done in result.dones:
            if done.session_id not in self._finishing:
                self._finishing.add(done.session_id)
                self._dones.put_nowait(done)
        self._memory.raise_for(result.error, result.error_session_id)

    async def _answer(self, frame: FromController) -> None:
        """Answer a frame that is not stored.

        Such a frame is about the connection, a file or a dismissed session. Frames of a dismissed
        session are acknowledged, so that the host stops sending them.
        """
        if isinstance(frame, Error):
            logger.warning("controller %s reports %s", self._controller_id, frame.code[:64])
        elif isinstance(frame, InteractiveOutput):
            await self._acknowledge(frame.session_id, frame.stream, frame.offset + len(frame.data))
        elif isinstance(frame, Gap):
            await self._acknowledge(frame.session_id, frame.stream, frame.to_offset)
        elif isinstance(frame, InteractiveCmdDone):
            await self._send(DoneAck(session_ids=[frame.session_id]))
        elif isinstance(frame, FileChunk | FileDeleted | FilesNamed):
            await self._files.hand_over(frame)

    async def _acknowledge(self, session_id: str, stream: Stream, offset: int) -> None:
        await self._send(
            Ack(offsets=[StreamOffset(session_id=session_id, stream=stream, offset=offset)])
        )
