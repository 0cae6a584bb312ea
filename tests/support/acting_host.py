"""A host that is not there: takes commands from the real outbox and answers through the real inbound functions, without a socket.

Its programs are coroutine-free scripts: ``answers`` maps what is typed to what is printed. Everything that is not scripted is left alone.
"""

import asyncio
from collections.abc import Callable
from types import TracebackType
from typing import Any, Self

from controller_client.protocol.messages import (
    CommandAck,
    CommandResult,
    Failure,
    FromServer,
    InputAck,
    InteractiveCmdDone,
    InteractiveOutput,
    Resize,
    RunCommand,
    SendInput,
    Started,
    StartInteractiveCmd,
    Stream,
    TerminalReport,
    TerminateCmd,
)
from projects import dispatch
from projects.database import in_database
from projects.inbound.batch import SessionMessage, commit_batch
from projects.inbound.commands import take_commands
from projects.models import Controller

Reply = bytes | Failure | None
"""What a program does when something is typed: prints this and waits again, is refused, or (None) goes on in silence."""


class ActingHost:
    """Serves one controller while it is entered. ``on_start`` and ``on_input`` say what the programs print; ``commands`` is what came."""

    def __init__(
        self,
        controller: Controller,
        *,
        on_start: Callable[[StartInteractiveCmd | RunCommand], Reply] = lambda _: b"",
        on_input: Callable[[SendInput], Reply] = lambda message: message.data,
    ) -> None:
        self.controller = controller
        self.on_start, self.on_input = on_start, on_input
        self.on_signal: Callable[[TerminateCmd], Failure | None] = lambda _: None
        self.commands: list[FromServer] = []
        self.kind = "line"
        self._offsets: dict[tuple[str, Stream], int] = {}
        self._inputs: dict[str, int] = {}
        self._task: asyncio.Task[None] | None = None

    async def __aenter__(self) -> Self:
        self._task = asyncio.create_task(self._serve())
        return self

    async def __aexit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        assert self._task is not None
        self._task.cancel()
        try:
            await self._task
        except asyncio.CancelledError:
            return

    async def _serve(self) -> None:
        async with dispatch.controller_doorbell(self.controller.id) as bell:
            while True:
                messages, _ = await in_database(take_commands, self.controller.id, self.controller.epoch)
                for message in messages:
                    self.commands.append(message)
                    await self.say(*self._reaction(message))
                await bell.wait(1.0)

    async def say(self, *messages: SessionMessage) -> None:
        """Commits messages as the consumer would, and rings."""
        result = await in_database(commit_batch, self.controller.id, self.controller.epoch, messages)
        assert result.error is None, result.error
        for session_id in result.rings:
            await dispatch.ring_session(session_id)

    def _reaction(self, message: FromServer) -> list[SessionMessage]:
        if isinstance(message, StartInteractiveCmd | RunCommand):
            reply = self.on_start(message)
            failure = reply if isinstance(reply, Failure) else None
            io_mode = "pipe" if isinstance(message, RunCommand) else message.io_mode
            pid = None if failure else 4711
            started = Started(session_id=message.session_id, command_seq=message.seq, pid=pid, io_mode=io_mode, failure=failure)
            return [started, *self._printed(message.session_id, reply)]
        if isinstance(message, SendInput):
            reply = self.on_input(message)
            failure = reply if isinstance(reply, Failure) else None
            self._inputs[message.session_id] = message.input_seq
            ack = InputAck(session_id=message.session_id, command_seq=message.seq, input_seq=message.input_seq, failure=failure)
            return [ack, *self._printed(message.session_id, reply)]
        if isinstance(message, TerminateCmd):
            ack = CommandAck(session_id=message.session_id, command_seq=message.seq, failure=self.on_signal(message))
            if not message.escalate:
                return [ack]
            return [ack, self.ended(message.session_id, end_reason="terminated", signal="SIGTERM")]
        if isinstance(message, Resize):
            return [CommandAck(session_id=message.session_id, command_seq=message.seq)]
        return []

    def _printed(self, session_id: str, reply: Reply) -> list[SessionMessage]:
        return [self.output(session_id, reply, is_waiting=True)] if isinstance(reply, bytes) else []

    def output(self, session_id: str, data: bytes, *, is_waiting: bool = False, stream: Stream = "stdout") -> InteractiveOutput:
        """Output of a program, and whether it waits for input after it."""
        offset = self._offsets.get((session_id, stream), 0)
        end = self._offsets[session_id, stream] = offset + len(data)
        verdict: dict[str, Any] = {"state": "running", "detail": "sleep[12] clock_nanosleep"}
        if is_waiting:
            verdict = {"state": "awaiting_input", "kind": self.kind, "evidence": "kernel", "prompt": data.decode(errors="replace")[-20:]}
        report = TerminalReport(offset=end, input_seq=self._inputs.get(session_id, 0), **verdict) if stream == "stdout" else None
        return InteractiveOutput(session_id=session_id, stream=stream, offset=offset, seq=end, data=data, terminal=report)

    def ended(self, session_id: str, **fields: Any) -> InteractiveCmdDone:
        """The end of a program, after everything it printed."""
        return InteractiveCmdDone(session_id=session_id, **{"end_reason": "exited", **fields})

    def result(self, session_id: str, **fields: Any) -> CommandResult:
        """The end of a one-shot, after everything it printed."""
        return CommandResult(session_id=session_id, **{"end_reason": "exited", **fields})
