"""A simulated host that answers the server's commands without a daemon or a socket.

It takes commands from the real outbox and answers them through the real inbound functions. Its
programs are functions of the test: ``on_start`` and ``on_input`` return what a program prints.
Commands of other kinds are acknowledged or ignored.
"""

import asyncio
from collections.abc import Callable, Sequence
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
    LifetimeReport,
    PauseLifetime,
    Resize,
    RunCommand,
    SendInput,
    Started,
    StartInteractiveCmd,
    Stream,
    TerminalReport,
    TerminateCmd,
)
from controller_client.protocol.session_state import SessionState
from projects.link.inbound.batch import SessionMessage, commit_batch
from projects.link.inbound.commands import take_commands
from projects.models import CommandSession, Controller
from projects.storage.access import in_database
from projects.wakeups import doorbells
from tests.support.waiting import await_until

Reply = bytes | Failure | None
"""The effect of a start or an input.

The program prints these bytes and waits again, or the host refuses with this failure. None: the
program goes on in silence.
"""


_START_SECONDS = 60.0


def _are_begun(session_ids: set[str]) -> bool:
    before = (SessionState.PENDING.value, SessionState.SENT.value)
    return not CommandSession.objects.filter(id__in=session_ids, state__in=before).exists()


def _stand_still(message: PauseLifetime) -> LifetimeReport:
    return LifetimeReport(
        left_seconds=200.0, is_paused=message.is_paused, pause_left_seconds=message.max_seconds
    )


class ActingHost:
    """Serves one controller inside its ``async with`` block.

    ``on_start`` and ``on_input`` return what the programs print. ``commands`` are those that came.
    """

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
        self.on_pause: Callable[[PauseLifetime], LifetimeReport | Failure] = _stand_still
        self.commands: list[FromServer] = []
        self.kind = "line"
        self._offsets: dict[tuple[str, Stream], int] = {}
        self._inputs: dict[str, int] = {}
        self._task: asyncio.Task[None] | None = None

    async def __aenter__(self) -> Self:
        self._task = asyncio.create_task(self._serve())
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        assert self._task is not None
        self._task.cancel()
        try:
            await self._task
        except asyncio.CancelledError:
            return

    async def _serve(self) -> None:
        async with doorbells.controller_doorbell(self.controller.id) as bell:
            while True:
                messages, _ = await in_database(
                    take_commands, self.controller.id, self.controller.epoch
                )
                for message in messages:
                    self.commands.append(message)
                    await self._commit(self._reaction(message))
                await bell.wait(1.0)

    async def say(self, *messages: SessionMessage) -> None:
        """Commit what a test makes the programs say, once their starts have been answered.

        A call that waits for a moment only may return before this host has taken its start.
        """
        named = {message.session_id for message in messages}
        await await_until(
            lambda: in_database(_are_begun, named), _START_SECONDS, "the host to take the starts"
        )
        await self._commit(messages)

    async def _commit(self, messages: Sequence[SessionMessage]) -> None:
        """Commit messages as the consumer would, and ring the doorbells of their sessions."""
        result = await in_database(
            commit_batch, self.controller.id, self.controller.epoch, messages
        )
        assert result.error is None, result.error
        for session_id in result.rings:
            await doorbells.ring_session(session_id)

    def _reaction(self, message: FromServer) -> list[SessionMessage]:
        if isinstance(message, StartInteractiveCmd | RunCommand):
            reply = self.on_start(message)
            failure = reply if isinstance(reply, Failure) else None
            io_mode = "pipe" if isinstance(message, RunCommand) else message.io_mode
            pid = None if failure else 4711
            started = Started(
                session_id=message.session_id,
                command_seq=message.seq,
                pid=pid,
                io_mode=io_mode,
                failure=failure,
            )
            return [started, *self._printed(message.session_id, reply)]
        if isinstance(message, SendInput):
            reply = self.on_input(message)
            failure = reply if isinstance(reply, Failure) else None
            self._inputs[message.session_id] = message.input_seq
            ack = InputAck(
                session_id=message.session_id,
                command_seq=message.seq,
                input_seq=message.input_seq,
                failure=failure,
            )
            return [ack, *self._printed(message.session_id, reply)]
        if isinstance(message, TerminateCmd):
            ack = CommandAck(
                session_id=message.session_id,
                command_seq=message.seq,
                failure=self.on_signal(message),
            )
            if not message.escalate:
                return [ack]
            return [ack, self.ended(message.session_id, end_reason="terminated", signal="SIGTERM")]
        if isinstance(message, PauseLifetime):
            lifetime = self.on_pause(message)
            failure = lifetime if isinstance(lifetime, Failure) else None
            report = None if isinstance(lifetime, Failure) else lifetime
            return [
                CommandAck(
                    session_id=message.session_id,
                    command_seq=message.seq,
                    failure=failure,
                    lifetime=report,
                )
            ]
        if isinstance(message, Resize):
            return [CommandAck(session_id=message.session_id, command_seq=message.seq)]
        return []

    def _printed(self, session_id: str, reply: Reply) -> list[SessionMessage]:
        return [self.output(session_id, reply, is_waiting=True)] if isinstance(reply, bytes) else []

    def output(
        self, session_id: str, data: bytes, *, is_waiting: bool = False, stream: Stream = "stdout"
    ) -> InteractiveOutput:
        """A frame of output, with the verdict whether the program waits for input after it."""
        offset = self._offsets.get((session_id, stream), 0)
        end = self._offsets[session_id, stream] = offset + len(data)
        verdict: dict[str, Any] = {"state": "running", "detail": "sleep[12] clock_nanosleep"}
        if is_waiting:
            verdict = {
                "state": "awaiting_input",
                "kind": self.kind,
                "evidence": "kernel",
                "prompt": data.decode(errors="replace")[-20:],
            }
        report = (
            TerminalReport(offset=end, input_seq=self._inputs.get(session_id, 0), **verdict)
            if stream == "stdout"
            else None
        )
        return InteractiveOutput(
            session_id=session_id, stream=stream, offset=offset, seq=end, data=data, terminal=report
        )

    def ended(self, session_id: str, **fields: Any) -> InteractiveCmdDone:
        """The message that ends a session; by default its program exited."""
        return InteractiveCmdDone(session_id=session_id, **{"end_reason": "exited", **fields})

    def result(self, session_id: str, **fields: Any) -> CommandResult:
        """The message that ends a one-shot; by default its program exited."""
        return CommandResult(session_id=session_id, **{"end_reason": "exited", **fields})
