"""The program of a session while it runs: reads its output, types its input, looks at it.

* **Output** goes through the masks, which take secrets out of it, to the pump, which sends it.
* **Input** waits in the queue until the program has had its first input (``stdin_data``). The queue
  asks RunningProgram for the bytes and has it type them.
* **Looks** at a terminal say whether the program waits for input. They follow output and input
  after a moment.

A terminal that no process has open reads as ended without end, although a program may open it
again. So it is read again after a pause, and counts as closed meanwhile.
"""

import math
import time
from collections.abc import Iterable
from contextlib import suppress
from typing import Final

from controller_client.holder.input.answers import InputAnswers
from controller_client.holder.input.keys import InputRefused
from controller_client.holder.input.pipe_target import STDIN_CLOSED, PipeTarget
from controller_client.holder.input.queue import InputQueue, InputTarget
from controller_client.holder.input.secret_guard import SecretGuard
from controller_client.holder.input.terminal_target import TerminalTarget
from controller_client.holder.output.mask import SessionMasks
from controller_client.holder.output.pump import STREAMS, OutputPump
from controller_client.holder.session_end import SessionEnd
from controller_client.program.start import Running
from controller_client.protocol.messages import (
    Failure,
    InputAck,
    SendInput,
    StartInteractiveCmd,
    Stream,
    TerminalReport,
)
from controller_client.session_files.one_shot import first_input
from controller_client.system.boot import host_time
from controller_client.system.control_group import SessionGroup
from controller_client.terminal_state import RUNNING, TerminalWatcher, Verdict

FIRST_LOOK_SECONDS: Final = 0.0003
"""From output or input to the first look at what the program does."""
REOPEN_LOOK_SECONDS: Final = 0.05
"""Between looks at a terminal that no process has open: select would report it without end."""
LAST_READ_BYTES: Final = 256 * 1024
"""More than the kernel keeps of a terminal's output."""
_MAX_READS: Final = 32


class RunningProgram(InputTarget):
    """The program of one session, from its start until ``end.is_over``; then it is to be closed."""

    def __init__(
        self,
        start: StartInteractiveCmd,
        running: Running,
        *,
        group: SessionGroup | None,
        answers: InputAnswers,
        pump: OutputPump,
        lives_from: float,
        now: float,
    ) -> None:
        process = self._process = running.process
        self._strict_seconds = start.rules.strict_seconds
        self._pump = pump
        self._masks = SessionMasks(STREAMS[process.io_mode])
        self._answers = answers
        self._inputs = InputQueue(answers, self)
        self.end = SessionEnd(
            start.session_id,
            process.pid,
            io_mode=process.io_mode,
            lifetime_seconds=start.lifetime_seconds,
            hang_up=self._hang_up,
            group=group,
            lives_from=lives_from,
            now=now,
        )
        self._watcher: TerminalWatcher | None = None
        self._target: InputTarget
        if process.io_mode == "pipe":
            self._target = PipeTarget(process, interrupt_tree=self.end.interrupt)
        else:
            self._watcher = TerminalWatcher(process.input_fd, process.pid)
            self._target = TerminalTarget(
                process,
                self._watcher,
                on_typed=lambda: self._look_soon(time.monotonic()),
                is_queue_blocked=lambda: self._inputs.is_blocked,
            )
        self._secrets = SecretGuard(process, running.program, self._watcher)
        self._next_look_at: float | None = None
        self._read_again_at: float | None = None
        self._look_soon(now)
        # ``stdin_data``, and the end of the input if nothing is to follow. Unlike an input of the
        # queue it may wait as long as it takes.
        self._first_input, self._first_bytes = first_input(start, process.io_mode)
        self._feed_first_input()

    # ---- what the session asks and tells

    def read_fds(self, now: float) -> Iterable[int]:
        """Return descriptors whose output is wanted now; none while the program is paused."""
        is_wanted = self._read_again_at is None and self._read_budget(now)
        return self._process.output_fds if is_wanted else ()

    def write_fd(self) -> int | None:
        """Return the descriptor to type into, if something waits for it to have room."""
        has_waiting = self._first_input is not None or self._inputs.is_blocked
        return self._process.input_fd if has_waiting and self._process.input_fd >= 0 else None

    def deadlines(self, now: float) -> list[float | None]:
        """Return the moments when ``advance`` is due although nothing happens."""
        times = [
            self._inputs.deadline,
            self.end.deadline(),
            self._masks.deadline,
            self._strict_deadline,
        ]
        if self._read_budget(now):
            # A paused program is neither read nor looked at; what ends the pause wakes the loop.
            look_at = None if self.end.has_exited else self._next_look_at
            times += [look_at, self._read_again_at]
        return times

    def on_readable(self, now: float) -> None:
        """Read what the program wrote."""
        if self._read_all(now) and self._watcher is not None:
            # Look at once: most answers are over when their last byte is read, and the watcher lets
            # a flood pass by itself.
            self._watcher.reset()
            self._next_look_at = now

    def on_writable(self, now: float) -> list[InputAck]:
        """Type on: the kernel has room for input again."""
        self._feed_first_input()
        return self._inputs.advance(now) + self._withdraw_unreadable()

    def submit(self, command: SendInput, now: float) -> list[InputAck]:
        """Type an input as soon as that is possible."""
        return self._inputs.submit(command, now) + self._withdraw_unreadable()

    def resize(self, rows: int, cols: int, now: float) -> None:
        """Change the size of the terminal; the program counts as running until it has drawn."""
        if self._is_hung_up:
            return
        if self._watcher is not None:
            self._watcher.before_resize()
            self._pump.report(self._report(RUNNING), now, at=host_time(), at_once=True)
        with suppress(OSError):
            self._process.resize(rows, cols)
        self._look_soon(now)

    def advance(self, now: float) -> list[InputAck]:
        """Do what is due: give up blocked input, look at the terminal, go on ending."""
        acks = self._inputs.expire(now)
        if (due := self._strict_deadline) is not None and now >= due:
            self.end.give_up(now)
        if (due := self._masks.deadline) is not None and now >= due:
            self._release_output(now, silent_until=now)
        if self.end.has_exited or (self._read_again_at is not None and now >= self._read_again_at):
            self._read_all(now)
        elif (
            self._next_look_at is not None and now >= self._next_look_at and self._read_budget(now)
        ):
            self._look(now)
        is_output_open = self._read_again_at is None and bool(self._process.output_fds)
        self.end.advance(now, is_output_open=is_output_open, is_paused=not self._read_budget(now))
        return acks

    def close(self, failure: Failure, now: float) -> list[InputAck]:
        """Let go of everything; inputs that still wait fail with ``failure``."""
        acks = self._inputs.withdraw_all(failure)
        self._release_output(now)
        if self._watcher is not None:
            self._watcher.close()
        self._secrets.close()
        self._process.close()
        self.end.release()
        self._pump.flush()
        return acks

    # ---- where inputs go (InputTarget)

    def encode(self, command: SendInput) -> bytes:
        """Return the bytes to type, as things are now. Raises InputRefused."""
        if self._is_hung_up:
            raise InputRefused(STDIN_CLOSED.code, STDIN_CLOSED.message)
        if command.secret is not None:
            self._secrets.check(command)
        data = self._target.encode(command)
        if (secret := command.secret_value) is not None:
            # Before a byte of the secret is typed: the program can show it only later.
            self._masks.add(secret)
        return data

    def type_bytes(self, data: bytes) -> int:
        """Type what there is room for: nothing until the program has had its first input."""
        return self._target.type_bytes(data) if self.is_free() else 0

    def is_free(self) -> bool:
        """Return whether the program has had its first input, which all others follow."""
        return self._first_input is None

    def holds_part(self) -> bool:
        """Return whether a line was begun and not ended."""
        return self._target.holds_part()

    def on_taken(self, command: SendInput) -> None:
        """Handle that the kernel has all of an input."""
        self._target.on_taken(command)

    def interrupt(self, command: SendInput) -> bool:
        """Interrupt the program past what it did not read."""
        return self._target.interrupt(command)

    def _feed_first_input(self) -> None:
        if self._first_input is None:
            return
        if self._first_bytes:
            self._first_bytes = self._first_bytes[self._target.type_bytes(self._first_bytes) :]
        if not self._first_bytes or self._process.input_fd < 0:
            first, self._first_input = self._first_input, None
            self._target.on_taken(first)

    def _withdraw_unreadable(self) -> list[InputAck]:
        """Fail the inputs that wait if the program closed its input: it will not read them."""
        is_closed = self._process.input_fd < 0 and self._inputs.is_blocked
        return self._inputs.withdraw_all(STDIN_CLOSED) if is_closed else []

    # ---- output

    @property
    def _strict_deadline(self) -> float | None:
        """The moment when unrecorded output ends the program, if the project wants that."""
        since = self._pump.unrecorded_since
        if self._strict_seconds is None or since is None or self.end.is_ending:
            return None
        return since + self._strict_seconds

    def _read_budget(self, now: float) -> int:
        return max(0, self._pump.read_budget(now) - self._masks.held_bytes)

    def _read_all(self, now: float, *, is_last: bool = False) -> bool:
        """Read until there is nothing more, or enough for this turn; return whether anything came.

        Nothing pauses the last read.
        """
        has_read = False
        if not self._process.output_fds:
            # Hung up: nothing opens it again.
            self._read_again_at = None
        for descriptor, stream in list(self._process.output_fds.items()):
            budget = LAST_READ_BYTES if is_last else self._read_budget(now)
            if data := self._read(descriptor, budget):
                has_read = True
                self._take_output(stream, self._masks.feed(stream, data, now), now)
        return has_read

    def _read(self, descriptor: int, budget: int) -> bytes:
        """Return what is there now, up to ``budget`` bytes."""
        chunks: list[bytes] = []
        while budget > 0 and len(chunks) < _MAX_READS:
            chunk = self._process.read(descriptor, budget)
            # Only a terminal can be opened again: a pipe that ended is no output any more.
            is_away = chunk is None and descriptor in self._process.output_fds
            self._read_again_at = time.monotonic() + REOPEN_LOOK_SECONDS if is_away else None
            if not chunk:
                break
            chunks.append(chunk)
            budget -= len(chunk)
        return b"".join(chunks)

    def _take_output(self, stream: Stream, data: bytes, now: float) -> None:
        """Pass on output without secrets: nothing behind this point sees any other."""
        if data:
            self._pump.produce(stream, data, now, host_time())
            if self._watcher is not None and (answer := self._watcher.on_output(data)):
                self._inputs.reply(answer)

    def _release_output(self, now: float, *, silent_until: float = math.inf) -> bool:
        """Pass on what was held back as a possible beginning of a secret; False if nothing was.

        Only that of the streams whose time to be silent was over by ``silent_until``.
        """
        released = list(self._masks.release(silent_until))
        for stream, data in released:
            self._take_output(stream, data, now)
        return bool(released)

    def _hang_up(self) -> None:
        now = time.monotonic()
        self._read_all(now, is_last=True)
        self._process.close()
        self._read_again_at, self._next_look_at = now, None

    @property
    def _is_hung_up(self) -> bool:
        """The terminal is closed, and its descriptor may be another one's by now."""
        return self._watcher is not None and self._process.input_fd < 0

    # ---- looks at the terminal

    def _look_soon(self, now: float) -> None:
        if self._watcher is not None:
            self._next_look_at = now + FIRST_LOOK_SECONDS

    def _look(self, now: float) -> None:
        if self._watcher is None or self._is_hung_up:
            return
        self._secrets.observe()
        verdict, delay = self._watcher.look(self._drain)
        self._next_look_at = None if delay is None else time.monotonic() + delay
        # A program that still has input to get is not waiting for input, whatever the look saw.
        if not self._inputs.is_blocked or verdict.state == "running":
            self._pump.report(self._report(verdict), now, at=host_time())

    def _drain(self) -> bool:
        now = time.monotonic()
        return self._read_all(now) or self._release_output(now) or not self._read_budget(now)

    def _report(self, verdict: Verdict) -> TerminalReport:
        return TerminalReport(
            state=verdict.state,
            offset=self._pump.produced_bytes,
            input_seq=self._answers.settled,
            kind=verdict.kind,
            evidence=verdict.evidence,
            prompt=verdict.prompt,
            detail=verdict.detail,
        )
