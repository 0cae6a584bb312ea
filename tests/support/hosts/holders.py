"""A host without a daemon: the real fork server, real holders, and a conversation with a holder."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any, TypeVar
from uuid import uuid4

from controller_client.protocol.codec import decode_from_holder, encode
from controller_client.protocol.limits import SESSION_WINDOW_BYTES
from controller_client.protocol.messages import (
    Ack,
    CommandAck,
    DoneAck,
    FromHolder,
    Gap,
    HolderAttach,
    HolderHello,
    InputAck,
    InteractiveCmdDone,
    InteractiveOutput,
    Message,
    PauseLifetime,
    Resize,
    RunCommand,
    SendInput,
    Started,
    StartInteractiveCmd,
    Stream,
    StreamOffset,
    TerminalReport,
    TerminateCmd,
)
from controller_client.server_link.holders.fork_server import Spawner
from controller_client.session_files.directory import SessionDirectory, create, directory_of
from controller_client.session_files.framing import Unpacker, pack
from controller_client.session_files.one_shot import StartCommand
from controller_client.system.termination import kill_leftovers
from tests.support.processes import children_of, status_field
from tests.support.waiting import await_until

M = TypeVar("M", bound=Message)
# Shorter than the programs that sleep for a minute go on by themselves.
WAIT_SECONDS = 55.0


class Conversation:
    """A daemon's conversation with one holder.

    Everything received is kept. With ``acks`` output is acknowledged as it comes.
    """

    def __init__(
        self,
        session_id: str,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        *,
        acks: bool,
    ) -> None:
        self.session_id = session_id
        self.acks = acks
        self.received: list[FromHolder] = []
        self.outputs: dict[Stream, bytearray] = {"stdout": bytearray(), "stderr": bytearray()}
        self.offsets: dict[Stream, int] = {"stdout": 0, "stderr": 0}
        self.gaps: list[Gap] = []
        self.is_closed = False
        self._reader, self._writer = reader, writer
        self._unpacker = Unpacker()
        self._changed = asyncio.Condition()
        self._pump = asyncio.create_task(self._receive())
        self._input_seq = 0
        self._seq = 1

    @property
    def output(self) -> bytearray:
        """The output received on stdout, which is everything a terminal shows."""
        return self.outputs["stdout"]

    @property
    def offset(self) -> int:
        """The offset of the next byte of stdout."""
        return self.offsets["stdout"]

    # ---- receiving

    async def _receive(self) -> None:
        while data := await self._read():
            for frame in self._unpacker.feed(data):
                self._take(decode_from_holder.decode(frame))
            async with self._changed:
                self._changed.notify_all()
        self.is_closed = True
        async with self._changed:
            self._changed.notify_all()

    async def _read(self) -> bytes:
        try:
            return await self._reader.read(1 << 18)
        except ConnectionError:
            return b""

    def _take(self, message: FromHolder) -> None:
        self.received.append(message)
        if isinstance(message, InteractiveOutput):
            expected = self.offsets[message.stream]
            assert message.offset == expected, (
                f"expected offset {expected} of {message.stream}, got {message.offset}"
            )
            self.outputs[message.stream] += message.data
            self.offsets[message.stream] += len(message.data)
        elif isinstance(message, Gap):
            assert message.from_offset == self.offsets[message.stream]
            self.gaps.append(message)
            self.offsets[message.stream] = message.to_offset
        if self.acks and isinstance(message, InteractiveOutput | Gap):
            self.ack()

    async def until(
        self, condition: Callable[[], Any], what: str, seconds: float = WAIT_SECONDS
    ) -> Any:
        """The first truthy value of ``condition``, tried after every frame."""
        try:
            async with asyncio.timeout(seconds), self._changed:
                return await self._changed.wait_for(condition)
        except TimeoutError:
            tail = bytes(self.output[-300:])
            raise AssertionError(
                f"waited {seconds} s for {what}; last frames {self.received[-3:]}; output ends "
                f"{tail!r}"
            ) from None

    async def nothing_for(self, seconds: float) -> None:
        """Check that nothing is received for ``seconds``."""
        count = len(self.received)
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds), self._changed:
                await self._changed.wait_for(lambda: len(self.received) > count)
        assert self.received[count:] == []

    def all_of(self, kind: type[M]) -> list[M]:
        """Every message of a kind that came, oldest first."""
        return [message for message in self.received if isinstance(message, kind)]

    async def get(self, kind: type[M], where: Callable[[M], bool] = lambda _: True) -> M:
        """The first message of a kind; waits for it."""
        found: M = await self.until(
            lambda: next((m for m in self.all_of(kind) if where(m)), None), kind.__name__
        )
        return found

    @property
    def terminal(self) -> TerminalReport | None:
        """The newest verdict; None before the first one."""
        return next(
            (
                m.terminal
                for m in reversed(self.all_of(InteractiveOutput))
                if m.terminal is not None
            ),
            None,
        )

    def _waits(self) -> TerminalReport | None:
        report = self.terminal
        is_new = (
            report is not None
            and report.offset == self.offset
            and report.input_seq >= self._input_seq
        )
        return (
            report if is_new and report is not None and report.state == "awaiting_input" else None
        )

    async def prompt(self) -> TerminalReport:
        """Wait until the program waits for input, and return that verdict.

        The verdict is at the newest offset and after the last input.
        """
        report: TerminalReport = await self.until(self._waits, "the program to wait for input")
        return report

    async def shows(self, text: bytes) -> None:
        """Wait until the output contains ``text``."""
        await self.until(lambda: text in self.output, f"{text!r} in the output")

    async def done(self) -> InteractiveCmdDone:
        """The message that ends the session; waits for it."""
        return await self.get(InteractiveCmdDone)

    # ---- sending

    def send(self, message: Message) -> None:
        self._writer.write(pack(encode(message)))

    def attach(
        self, offset: int = 0, window_bytes: int = SESSION_WINDOW_BYTES, *, stderr: int = 0
    ) -> None:
        """Ask for output from these offsets on."""
        self.offsets = {"stdout": offset, "stderr": stderr}
        self.send(
            HolderAttach(
                session_id=self.session_id, window_bytes=window_bytes, offsets=self._committed()
            )
        )

    def ack(self) -> None:
        """Tell the holder that everything received is committed."""
        self.send(Ack(offsets=self._committed()))

    def _committed(self) -> list[StreamOffset]:
        # A terminal has no stderr, so its offset is named only after stderr has printed something.
        known = [stream for stream, offset in self.offsets.items() if offset or stream == "stdout"]
        return [
            StreamOffset(session_id=self.session_id, stream=stream, offset=self.offsets[stream])
            for stream in known
        ]

    def type_later(self, data: bytes = b"", **more: Any) -> int:
        """Send an input without waiting for its acknowledgement; return its number."""
        self._input_seq += 1
        self._seq += 1
        self.send(
            SendInput(
                seq=self._seq,
                session_id=self.session_id,
                input_seq=self._input_seq,
                data=data,
                **more,
            )
        )
        return self._input_seq

    async def type(self, data: bytes = b"", **more: Any) -> InputAck:
        """Send an input, and return its acknowledgement."""
        number = self.type_later(data, **more)
        return await self.get(InputAck, lambda ack: ack.input_seq == number)

    async def terminate(self, **more: Any) -> CommandAck:
        """Send TERMINATE_CMD, and return its acknowledgement."""
        self._seq += 1
        seq = self._seq
        self.send(TerminateCmd(seq=seq, session_id=self.session_id, **more))
        return await self.get(CommandAck, lambda ack: ack.command_seq == seq)

    async def resize(self, rows: int, cols: int) -> CommandAck:
        """Send RESIZE, and return its acknowledgement."""
        self._seq += 1
        seq = self._seq
        self.send(Resize(seq=seq, session_id=self.session_id, rows=rows, cols=cols))
        return await self.get(CommandAck, lambda ack: ack.command_seq == seq)

    async def pause_lifetime(
        self, *, is_paused: bool, max_seconds: float, seq: int | None = None
    ) -> CommandAck:
        """Send PAUSE_LIFETIME, and return its acknowledgement."""
        self._seq += 1
        seq = self._seq if seq is None else seq
        self.send(
            PauseLifetime(
                seq=seq, session_id=self.session_id, is_paused=is_paused, max_seconds=max_seconds
            )
        )
        return await self.get(CommandAck, lambda ack: ack.command_seq == seq)

    def forget(self) -> None:
        """Send DONE_ACK: the holder may forget the session."""
        self.send(DoneAck(session_ids=[self.session_id]))

    async def close(self) -> None:
        """Reset the connection, as the death of a daemon does."""
        self._writer.transport.abort()
        await self._pump


def holders_of(fork_server: int) -> set[int]:
    """The holders that a fork server has forked, without the programs that it rehearses with."""
    return {
        child
        for child in children_of(fork_server)
        if status_field(child, "Name") == "holdline-holder"
    }


class HolderHost:
    """The fork server and the sessions of one test."""

    def __init__(self, state_dir: Path, run_as: str | None = None) -> None:
        self.state_dir = state_dir
        self.spawner = Spawner(state_dir, run_as=run_as)
        self._sessions: list[str] = []
        self._conversations: list[Conversation] = []

    def directory(self, session_id: str) -> SessionDirectory:
        return directory_of(self.state_dir, session_id)

    async def spawn(self, command: str | None = None, **more: Any) -> str:
        """Start a session without talking to its holder; return its id."""
        session_id = str(uuid4())
        await self.spawn_from(
            StartInteractiveCmd(seq=1, session_id=session_id, command=command, **more)
        )
        return session_id

    async def spawn_from(self, start: StartCommand) -> None:
        """Start the session that a START describes."""
        assert create(self.state_dir, start)
        self._sessions.append(start.session_id)
        (await self.spawner.spawn(start)).close()

    async def talk(self, session_id: str, *, acks: bool = True) -> Conversation:
        """Connect to a holder, and return once it has said HOLDER_HELLO."""
        reader, writer = await asyncio.open_unix_connection(
            sock=self.directory(session_id).connect()
        )
        conversation = Conversation(session_id, reader, writer, acks=acks)
        self._conversations.append(conversation)
        await conversation.get(HolderHello)
        return conversation

    async def run(
        self, command: str | None = None, *, acks: bool = True, **more: Any
    ) -> Conversation:
        """Start a session and attach to it from its first byte."""
        conversation = await self.talk(await self.spawn(command, **more), acks=acks)
        conversation.attach()
        await conversation.get(Started)
        return conversation

    async def run_once(self, command: str | None = None, **more: Any) -> Conversation:
        """Start a one-shot and attach to it from its first byte."""
        session_id = str(uuid4())
        await self.spawn_from(RunCommand(seq=1, session_id=session_id, command=command, **more))
        conversation = await self.talk(session_id)
        conversation.attach()
        await conversation.get(Started)
        return conversation

    def holder_pid(self, session_id: str) -> int:
        """The holder's process id: the parent of its program."""
        pid = self.directory(session_id).read_pid()
        assert pid is not None
        parent = next(
            line
            for line in Path(f"/proc/{pid}/status").read_text().splitlines()
            if line.startswith("PPid:")
        )
        return int(parent.split()[1])

    async def close(self) -> None:
        """End every session, forget it, and wait until its holder is gone."""
        for conversation in self._conversations:
            await conversation.close()
        for session_id in self._sessions:
            await self._end(session_id)
        await self.spawner.close()

    async def _end(self, session_id: str) -> None:
        directory = self.directory(session_id)
        if not directory.is_holder_alive():
            kill_leftovers(session_id)
            return
        last = await self.talk(session_id)
        summary = last.all_of(HolderHello)[0].summary
        last.send(TerminateCmd(seq=0, session_id=session_id, signal="SIGKILL"))
        last.attach(
            **{
                "offset" if each.stream == "stdout" else "stderr": each.first_offset
                for each in summary.streams
            }
        )
        # If the test has sent DONE_ACK, the holder may end before it answers.
        await last.until(
            lambda: last.all_of(Started) or last.is_closed, f"session {session_id} to answer"
        )
        if any(started.failure is None for started in last.all_of(Started)):
            await last.done()
        last.forget()
        await await_until(
            lambda: not directory.path.exists(),
            WAIT_SECONDS,
            f"session {session_id} to be forgotten",
        )
        await last.close()


@asynccontextmanager
async def holder_host(state_dir: Path, run_as: str | None = None) -> AsyncIterator[HolderHost]:
    """A host for one test; after the block its processes are all gone."""
    host = HolderHost(state_dir, run_as)
    await host.spawner.start()
    try:
        yield host
    finally:
        await host.close()
