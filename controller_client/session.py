"""One session inside its holder: the program, what it prints, what it is told, and how it ends.

Interactive, in the background or a one-shot: it is the same here.

Driven by the holder's loop; nothing here blocks, and ``now`` is always monotonic seconds.
"""

import time
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Final

from controller_client.control_group import SessionGroup
from controller_client.input_queue import InputQueue, InputTarget
from controller_client.one_shot import StartCommand, as_end, as_start
from controller_client.output_mask import SessionMasks
from controller_client.output_pump import OutputPump
from controller_client.pipe_target import STDIN_CLOSED, PipeTarget
from controller_client.process import Process
from controller_client.program_start import start_program
from controller_client.protocol.limits import MAX_TERMINAL_SIZE
from controller_client.protocol.messages import (
    CommandAck,
    Failure,
    Gap,
    InputAck,
    InteractiveCmdDone,
    InteractiveOutput,
    IoMode,
    Resize,
    RunCommand,
    SendInput,
    SessionSummary,
    Started,
    Stream,
    TerminalReport,
    TerminateCmd,
)
from controller_client.session_end import SessionEnd
from controller_client.start_failure import StartFailed
from controller_client.terminal_state import RUNNING, TerminalWatcher, Verdict
from controller_client.terminal_target import TerminalTarget

FIRST_LOOK_SECONDS: Final = 0.0003
"""From output or input to the first look at what the program does."""
REOPEN_LOOK_SECONDS: Final = 0.05
"""Between looks at a terminal that no process has open: select would report it without end."""
LAST_READ_BYTES: Final = 256 * 1024
"""More than the kernel keeps of a terminal's output."""
_MAX_READS: Final = 32
_ENDED: Final = Failure(code="SESSION_ENDED", message="the program has ended")
_NO_TERMINAL: Final = Failure(code="NOT_A_TERMINAL", message="the program runs on pipes, which have no size")
# What ends the input of a terminal, by whether a line is open before it.
_TYPED_END: Final = {True: b"\x04", False: b"\x04\x04"}
_STREAMS: Final[dict[IoMode, list[Stream]]] = {"pty": ["stdout"], "pipe": ["stdout", "stderr"]}


class InteractiveSession:
    """A program on a terminal or on pipes, from its start to its end. ``groups``: where to make control groups, if anywhere."""

    def __init__(self, command: StartCommand, groups: Path | None = None) -> None:
        self._command = command
        self._start = start = as_start(command)
        self.session_id = start.session_id
        self.pump = self._pump_for(start.io_mode)
        self.failure: Failure | None = None
        self.done: InteractiveCmdDone | None = None
        self._process: Process | None = None
        self._watcher: TerminalWatcher | None = None
        self._end: SessionEnd | None = None
        self._group = SessionGroup.of(groups, start.session_id) if groups is not None else None
        self._target: InputTarget | None = None
        self._inputs = InputQueue(start.session_id, self)
        self._masks = SessionMasks(_STREAMS["pipe"])
        # What the program is given before any input; only then, if that is asked for, its input is closed.
        self._first_input: SendInput | None = None
        self._first_bytes = b""
        self._io_mode: IoMode = start.io_mode
        self._warning: str | None = None
        self._next_look_at: float | None = None
        self._read_again_at: float | None = None

    # ---- beginning

    def begin(self) -> None:
        """Start the program; ``failure`` says why it could not be."""
        now = time.monotonic()
        try:
            self._make_group()
            process, self._warning = start_program(self._start, self._group)
        except StartFailed as error:
            self.failure = error.failure
            if self._group is not None:
                self._group.remove()
            return
        self._process = process
        if process.io_mode != self._io_mode:
            self._io_mode = process.io_mode
            self.pump = self._pump_for(process.io_mode)
        self._end = SessionEnd(
            self.session_id,
            process.pid,
            io_mode=process.io_mode,
            lifetime_seconds=self._start.lifetime_seconds,
            hang_up=self._hang_up,
            group=self._group,
            now=now,
        )
        self._target = self._connect(process, self._end)
        self._look_soon(now)
        self._begin_first_input()

    def _pump_for(self, io_mode: IoMode) -> OutputPump:
        return OutputPump(self.session_id, _STREAMS[io_mode], ring_bytes=self._start.ring_bytes, overflow=self._start.overflow)

    def _make_group(self) -> None:
        """A host that cannot make one now limits each process instead."""
        if self._group is not None:
            try:
                self._group.create(self._start.limits)
            except OSError:
                self._group = None

    def _connect(self, process: Process, end: SessionEnd) -> InputTarget:
        if process.io_mode == "pipe":
            return PipeTarget(process, interrupt_tree=end.interrupt)
        watcher = self._watcher = TerminalWatcher(process.input_fd, process.pid)
        return TerminalTarget(
            process, watcher, on_typed=lambda: self._look_soon(time.monotonic()), is_queue_blocked=lambda: self._inputs.is_blocked
        )

    def _begin_first_input(self) -> None:
        """``stdin_data``, and the end of the input if nothing is to follow. Unlike an input, it waits as long as it takes."""
        start = self._start
        if start.stdin_data or start.stdin == "closed":
            first = SendInput(seq=0, session_id=self.session_id, input_seq=0, data=start.stdin_data, eof=start.stdin == "closed")
            self._first_bytes = first.data + (_TYPED_END[first.data[-1:] in {b"", b"\n"}] if first.eof and self._io_mode == "pty" else b"")
            self._first_input = first
            self._feed_first_input()

    @property
    def pid(self) -> int | None:
        """The program's process id, once it was started."""
        return self._process.pid if self._process is not None else None

    @property
    def is_one_shot(self) -> bool:
        """Its caller waits for the end alone."""
        return isinstance(self._command, RunCommand)

    @property
    def has_ended(self) -> bool:
        """There is nothing left to happen: it could not be started, or DONE says how it went."""
        return self.done is not None or self.failure is not None

    def started(self) -> Started:
        """The answer to START, as often as it is asked for."""
        pid = None if self.failure else self.pid
        return Started(
            session_id=self.session_id,
            command_seq=self._start.seq,
            pid=pid,
            io_mode=self._io_mode,
            warning=self._warning,
            failure=self.failure,
        )

    def last_acks(self) -> list[InputAck]:
        """The answers to the newest inputs, as often as they are asked for."""
        return self._inputs.last_acks

    def summary(self) -> SessionSummary:
        """The session as HELLO names it."""
        return SessionSummary(
            session_id=self.session_id,
            state="done" if self.has_ended else "running",
            streams=self.pump.sender.positions(),
            input_seq=self._inputs.settled,
            pid=self.pid,
        )

    # ---- what the loop asks

    def read_fds(self, now: float) -> Iterable[int]:
        """Descriptors whose output is wanted now; none while the program is paused."""
        if self._process is None or self.has_ended or self._read_again_at is not None or not self._read_budget(now):
            return ()
        return self._process.output_fds

    def write_fd(self) -> int | None:
        """The descriptor to type into, while something waits for it to have room."""
        if self._process is None or self.has_ended or self._process.input_fd < 0 or not self._has_input_waiting:
            return None
        return self._process.input_fd

    @property
    def _has_input_waiting(self) -> bool:
        return self._first_input is not None or self._inputs.is_blocked

    def deadline(self, now: float) -> float | None:
        """When ``advance`` is due although nothing happens."""
        times = [self.pump.deadline(now)]
        if not self.has_ended and self._end is not None:
            times += [self._inputs.deadline, self._end.deadline(), self._masks.deadline, self._strict_deadline]
            if self._read_budget(now):
                # A paused program is neither read nor looked at; what ends the pause wakes us.
                times += [self._next_look_at, self._read_again_at]
        return min((at for at in times if at is not None), default=None)

    # ---- what the loop tells

    def on_readable(self, now: float) -> None:
        """The program wrote something, or its terminal was closed."""
        if self._read_all(now) and self._watcher is not None:
            # At once: most answers are over when their last byte is read, and the watcher lets a flood pass by itself.
            self._watcher.reset()
            self._next_look_at = now

    def on_writable(self, now: float) -> list[InputAck]:
        """The kernel has room for input again."""
        self._feed_first_input()
        return self._inputs.advance(now) + self._withdraw_unreadable()

    def on_child_change(self, now: float) -> None:
        """SIGCHLD: the program, or something it left to us, ended."""
        if self._end is not None and not self.has_ended:
            self._end.reap(now)

    def on_input(self, command: SendInput, now: float) -> list[InputAck]:
        """Type, or say why not."""
        if self.has_ended or self._end is None or self._end.has_exited:
            return self._inputs.refuse(command, self.failure or _ENDED)
        return self._inputs.submit(command, now) + self._withdraw_unreadable()

    def on_terminate(self, command: TerminateCmd, now: float) -> CommandAck:
        """Signal the program and all it started; that it has ended already is no failure."""
        failure = self._end.terminate(command, now) if self._end is not None and not self.has_ended else None
        return CommandAck(session_id=self.session_id, command_seq=command.seq, failure=failure)

    def on_resize(self, command: Resize, now: float) -> CommandAck:
        """Change the size of the terminal. Until the program has drawn again it is not known to wait."""
        failure = None
        if self._process is None or self.has_ended:
            failure = _ENDED
        elif self._process.io_mode == "pipe":
            failure = _NO_TERMINAL
        elif not (0 < command.rows <= MAX_TERMINAL_SIZE and 0 < command.cols <= MAX_TERMINAL_SIZE):
            failure = Failure(code="BAD_SIZE", message=f"rows and columns are from 1 to {MAX_TERMINAL_SIZE}")
        else:
            if self._watcher is not None:
                self._watcher.before_resize()
                self.pump.report(self._report(RUNNING), now, at_once=True)
            with suppress(OSError):
                self._process.resize(command.rows, command.cols)
            self._look_soon(now)
        return CommandAck(session_id=self.session_id, command_seq=command.seq, failure=failure)

    def advance(self, now: float) -> list[InputAck]:
        """Do what is due: give up blocked input, look at the terminal, go on ending."""
        if self.has_ended or self._end is None or self._process is None:
            return []
        acks = self._inputs.expire(now)
        if (due := self._strict_deadline) is not None and now >= due:
            self._end.give_up(now)
        if (due := self._masks.deadline) is not None and now >= due:
            self._release_output(now)
        if self._end.has_exited or (self._read_again_at is not None and now >= self._read_again_at):
            self._read_all(now)
        elif self._next_look_at is not None and now >= self._next_look_at and self._read_budget(now):
            self._look(now)
        self._end.advance(now, is_output_open=self._is_output_open, is_paused=not self._read_budget(now))
        if self._end.is_over:
            acks += self._conclude(now)
        return acks

    def frames(self, now: float) -> Iterator[InteractiveOutput | Gap]:
        """Output and verdicts that are to be sent now."""
        return self.pump.frames(now)

    # ---- where inputs go (InputTarget)

    def encode(self, command: SendInput) -> bytes:
        """The bytes to type, as things are now. Raises InputRefused."""
        data = self._running_target().encode(command)
        if command.secret is not None:
            # Before a byte of it is typed: what the program shows of it comes later.
            self._masks.add(command.secret.rstrip(b"\r\n"))
        return data

    def type_bytes(self, data: bytes) -> int:
        """Type what there is room for; nothing, as long as the program has not been given what comes first."""
        return 0 if self._first_input is not None else self._running_target().type_bytes(data)

    def on_taken(self, command: SendInput) -> None:
        """The kernel has all of an input."""
        self._running_target().on_taken(command)

    def interrupt(self, command: SendInput) -> bool:
        """Interrupt the program past what it did not read."""
        return self._running_target().interrupt(command)

    # ---- inside

    @property
    def _strict_deadline(self) -> float | None:
        """When output that is not recorded ends the program, if its project wants that and it does not end already."""
        seconds, since = self._start.rules.strict_seconds, self.pump.unrecorded_since
        if seconds is None or since is None or self._end is None or self._end.is_ending:
            return None
        return since + seconds

    def _running_process(self) -> Process:
        if self._process is None:
            raise RuntimeError("the session was not started")
        return self._process

    def _running_target(self) -> InputTarget:
        if self._target is None:
            raise RuntimeError("the session was not started")
        return self._target

    @property
    def _is_output_open(self) -> bool:
        return self._read_again_at is None and bool(self._running_process().output_fds)

    def _look_soon(self, now: float) -> None:
        if self._watcher is not None:
            self._next_look_at = now + FIRST_LOOK_SECONDS

    def _feed_first_input(self) -> None:
        first = self._first_input
        if first is None:
            return
        target = self._running_target()
        if self._first_bytes:
            self._first_bytes = self._first_bytes[target.type_bytes(self._first_bytes) :]
        if not self._first_bytes or self._running_process().input_fd < 0:
            self._first_input = None
            target.on_taken(first)

    def _withdraw_unreadable(self) -> list[InputAck]:
        """A program that closed its input will not read what still waits."""
        is_closed = self._running_process().input_fd < 0 and self._inputs.is_blocked
        return self._inputs.withdraw_all(STDIN_CLOSED) if is_closed else []

    def _read_all(self, now: float, *, is_last: bool = False) -> bool:
        """Read until there is nothing more, or enough for this turn; whether anything came. The last time nothing pauses it."""
        has_read = False
        for descriptor, stream in list(self._running_process().output_fds.items()):
            if data := self._read(descriptor, LAST_READ_BYTES if is_last else self._read_budget(now)):
                has_read = True
                self._take_output(stream, self._masks.feed(stream, data, now), now)
        return has_read

    def _take_output(self, stream: Stream, data: bytes, now: float) -> None:
        """Output without secrets: nothing behind this point sees any other."""
        if data:
            self.pump.produce(stream, data, now)
            if self._watcher is not None and (answer := self._watcher.on_output(data)):
                self._inputs.answer(answer)

    def _release_output(self, now: float) -> bool:
        """What was held back as a possible beginning of a secret; whether there was any."""
        released = list(self._masks.release())
        for stream, data in released:
            self._take_output(stream, data, now)
        return bool(released)

    def _read_budget(self, now: float) -> int:
        return max(0, self.pump.read_budget(now) - self._masks.held_bytes)

    def _read(self, descriptor: int, budget: int) -> bytes:
        """What is there, up to what may be read in this turn."""
        process = self._running_process()
        chunks: list[bytes] = []
        while budget > 0 and len(chunks) < _MAX_READS:
            chunk = process.read(descriptor, budget)
            # Only a terminal can be opened again.
            is_away = chunk is None and descriptor in process.output_fds
            self._read_again_at = time.monotonic() + REOPEN_LOOK_SECONDS if is_away else None
            if not chunk:
                break
            chunks.append(chunk)
            budget -= len(chunk)
        return b"".join(chunks)

    def _look(self, now: float) -> None:
        if self._watcher is None:
            return
        verdict, delay = self._watcher.look(self._drain)
        self._next_look_at = None if delay is None else time.monotonic() + delay
        # Whoever still has input to get is not waiting for it, whatever was seen of it.
        if not self._inputs.is_blocked or verdict.state == "running":
            self.pump.report(self._report(verdict), now)

    def _drain(self) -> bool:
        now = time.monotonic()
        return self._read_all(now) or self._release_output(now) or not self._read_budget(now)

    def _report(self, verdict: Verdict) -> TerminalReport:
        return TerminalReport(
            state=verdict.state,
            offset=self.pump.produced_bytes,
            input_seq=self._inputs.settled,
            kind=verdict.kind,
            evidence=verdict.evidence,
            prompt=verdict.prompt,
            detail=verdict.detail,
        )

    def _hang_up(self) -> None:
        process = self._running_process()
        now = time.monotonic()
        self._read_all(now, is_last=True)
        process.close()
        self._read_again_at = now

    def _conclude(self, now: float) -> list[InputAck]:
        """Nothing of the program is left, or nothing more can be done about it."""
        if self._end is None:
            return []
        acks = self._inputs.withdraw_all(_ENDED)
        self._release_output(now)
        self.done = as_end(self._command, self._end.done(self.pump.sender.finals(), now))
        if self._watcher is not None:
            self._watcher.close()
        self._running_process().close()
        self._end.release()
        self.pump.flush()
        return acks
