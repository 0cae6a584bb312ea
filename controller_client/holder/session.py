"""One session inside its holder, from START to DONE: what the daemon asks of it and is answered.

Interactive, in the background or a one-shot: sessions of all kinds are the same here. What exists
only while the program runs is in RunningProgram.

The holder's loop drives it. Nothing here blocks, and ``now`` is always monotonic seconds.
"""

import time
from collections.abc import Iterable
from pathlib import Path
from typing import Final

import msgspec

from controller_client.holder.deadlines import earliest
from controller_client.holder.input.answers import InputAnswers, Place
from controller_client.holder.input.keys import InputRefused, check_lines
from controller_client.holder.output.pump import STREAMS, OutputPump
from controller_client.holder.running_program import RunningProgram
from controller_client.program.start import start_program
from controller_client.protocol.limits import MAX_TERMINAL_SIZE
from controller_client.protocol.messages import (
    CommandAck,
    Failure,
    InputAck,
    InteractiveCmdDone,
    IoMode,
    LifetimeReport,
    PauseLifetime,
    Resize,
    RunCommand,
    SendInput,
    SessionSummary,
    Started,
    TerminateCmd,
)
from controller_client.session_files.directory import SessionDirectory
from controller_client.session_files.one_shot import StartCommand, as_end, as_start
from controller_client.system.boot import host_time, lifetime_clock
from controller_client.system.control_group import SessionGroup
from controller_client.system.start_failure import StartFailed

_ENDED: Final = Failure(code="SESSION_ENDED", message="the program has ended")
_NO_TERMINAL: Final = Failure(
    code="NOT_A_TERMINAL", message="the program runs on pipes, which have no size"
)
_BAD_SIZE: Final = Failure(
    code="BAD_SIZE", message=f"rows and columns are from 1 to {MAX_TERMINAL_SIZE}"
)


class InteractiveSession:
    """A program on a terminal or on pipes, from its start to its end.

    ``groups``: where to make control groups, if anywhere. ``directory``: the session's files, in
    which the daemon says why it killed the program; None if there is no daemon. ``pid`` is the
    program's, once it was started. ``failure`` says why it could not be started, ``done`` how it
    ended.
    """

    def __init__(
        self,
        command: StartCommand,
        groups: Path | None = None,
        directory: SessionDirectory | None = None,
    ) -> None:
        self._command = command
        self._directory = directory
        self._start = start = as_start(command)
        self.session_id = start.session_id
        self._io_mode: IoMode = start.io_mode
        self.pump = self._new_pump()
        self.pid: int | None = None
        self.failure: Failure | None = None
        self.done: InteractiveCmdDone | None = None
        self._warning: str | None = None
        self._answers = InputAnswers(start.session_id, self._place)
        self._group = SessionGroup.of(groups, start.session_id) if groups is not None else None
        # Set from the start of the program until nothing of it is left.
        self._program: RunningProgram | None = None

    # ---- beginning

    def begin(self) -> None:
        """Start the program; ``failure`` says why it could not be."""
        now, lives_from = time.monotonic(), lifetime_clock()
        try:
            self._make_group()
            self._check_first_input()
            running = start_program(self._start, self._group)
        except (StartFailed, InputRefused) as error:
            self.failure = error.failure
            if self._group is not None:
                self._group.remove()
            return
        self._warning = running.warning
        self.pid = running.process.pid
        if running.process.io_mode != self._io_mode:
            self._io_mode = running.process.io_mode
            self.pump = self._new_pump()
        self._program = RunningProgram(
            self._start,
            running,
            group=self._group,
            answers=self._answers,
            pump=self.pump,
            lives_from=lives_from,
            now=now,
        )

    def _new_pump(self) -> OutputPump:
        return OutputPump(
            self.session_id,
            STREAMS[self._io_mode],
            ring_bytes=self._start.ring_bytes,
            overflow=self._start.overflow,
        )

    def _check_first_input(self) -> None:
        """Refuse a first input that the new terminal would cut. Raises InputRefused."""
        if self._io_mode == "pty":
            check_lines(self._start.stdin_data)

    def _make_group(self) -> None:
        """Make the control group; a host that cannot make one now limits each process instead."""
        if self._group is not None:
            try:
                self._group.create(self._start.limits)
            except OSError:
                self._group = None

    def _with_daemons_reason(self, done: InteractiveCmdDone) -> InteractiveCmdDone:
        """Tell why the daemon killed the program, if it did so because this process did not act."""
        is_killed = done.end_reason == "exited" and done.signal == "SIGKILL"
        if not is_killed or self._directory is None:
            return done
        reason = self._directory.read_overdue()
        return done if reason is None else msgspec.structs.replace(done, end_reason=reason)

    @property
    def is_one_shot(self) -> bool:
        """True if the caller waits for the end alone."""
        return isinstance(self._command, RunCommand)

    @property
    def has_ended(self) -> bool:
        """True if nothing is left to happen: the start failed, or DONE says how it ended."""
        return self.done is not None or self.failure is not None

    def started(self) -> Started:
        """Return the answer to START, as often as it is asked for."""
        return Started(
            session_id=self.session_id,
            command_seq=self._start.seq,
            pid=self.pid,
            io_mode=self._io_mode,
            warning=self._warning,
            failure=self.failure,
            lifetime=self._lifetime_report(),
        )

    def last_acks(self) -> list[InputAck]:
        """Return the answers to the newest inputs, as often as they are asked for."""
        return self._answers.last

    def summary(self) -> SessionSummary:
        """Return the session as HELLO names it."""
        return SessionSummary(
            session_id=self.session_id,
            state="done" if self.has_ended else "running",
            streams=self.pump.sender.positions(),
            input_seq=self._answers.settled,
            pid=self.pid,
            lifetime=self._lifetime_report(),
        )

    def _place(self) -> Place:
        return self.pump.produced_bytes, host_time()

    def _ack(
        self,
        command_seq: int,
        failure: Failure | None = None,
        lifetime: LifetimeReport | None = None,
    ) -> CommandAck:
        offset, at = self._place()
        return CommandAck(
            session_id=self.session_id,
            command_seq=command_seq,
            failure=failure,
            lifetime=lifetime,
            offset=offset,
            at=at,
        )

    def _lifetime_report(self) -> LifetimeReport | None:
        lifetime = self._program.end.lifetime if self._program is not None else None
        return lifetime.report(lifetime_clock()) if lifetime is not None else None

    # ---- what the loop asks

    def read_fds(self, now: float) -> Iterable[int]:
        """Return descriptors whose output is wanted now; none while the program is paused."""
        return self._program.read_fds(now) if self._program is not None else ()

    def write_fd(self) -> int | None:
        """Return the descriptor to type into, if something waits for it to have room."""
        return self._program.write_fd() if self._program is not None else None

    def deadline(self, now: float, *, has_room: bool = True) -> float | None:
        """Return when ``advance`` is due although nothing happens.

        ``has_room``: there is room for output on its way to the daemon.
        """
        times = [self.pump.deadline(now, has_room=has_room)]
        if self._program is not None:
            times += self._program.deadlines(now)
        return earliest(times)

    # ---- what the loop tells

    def on_readable(self, now: float) -> None:
        """Handle output, or the end of it: the program wrote something, or closed its terminal."""
        if self._program is not None:
            self._program.on_readable(now)

    def on_writable(self, now: float) -> list[InputAck]:
        """Type on: the kernel has room for input again."""
        return self._program.on_writable(now) if self._program is not None else []

    def on_child_change(self, now: float) -> None:
        """Handle SIGCHLD: the program ended, or something that it left to this process."""
        if self._program is not None:
            self._program.end.reap(now)

    def on_input(self, command: SendInput, now: float) -> list[InputAck]:
        """Type an input, or answer why it is not typed."""
        if self._program is None or self._program.end.has_exited:
            return self._answers.refuse(command, self.failure or _ENDED)
        return self._program.submit(command, now)

    def on_terminate(self, command: TerminateCmd, now: float) -> CommandAck:
        """Signal the program and all it started; that it has ended already is no failure."""
        failure = self._program.end.terminate(command, now) if self._program is not None else None
        return self._ack(command.seq, failure)

    def on_resize(self, command: Resize, now: float) -> CommandAck:
        """Change the size of the terminal.

        Until the program has drawn again it is not known to wait.
        """
        failure = None
        if self._program is None:
            failure = _ENDED
        elif self._io_mode == "pipe":
            failure = _NO_TERMINAL
        elif not (0 < command.rows <= MAX_TERMINAL_SIZE and 0 < command.cols <= MAX_TERMINAL_SIZE):
            failure = _BAD_SIZE
        else:
            self._program.resize(command.rows, command.cols, now)
        return self._ack(command.seq, failure)

    def on_pause_lifetime(self, command: PauseLifetime) -> CommandAck:
        """Stop the clock of the lifetime, or let it run on."""
        if self._program is None:
            return self._ack(command.seq, _ENDED)
        if self._program.end.lifetime is not None:
            self._program.end.lifetime.pause(command, lifetime_clock())
        return self._ack(command.seq, lifetime=self._lifetime_report())

    def advance(self, now: float) -> list[InputAck]:
        """Do what is due: give up blocked input, look at the terminal, go on ending."""
        program = self._program
        if program is None:
            return []
        acks = program.advance(now)
        if program.end.is_over:
            acks += program.close(_ENDED, now)
            done = self._with_daemons_reason(program.end.done(self.pump.sender.finals(), now))
            self.done = as_end(self._command, done)
            self._program = None
        return acks
