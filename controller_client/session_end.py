"""How a session ends: its lifetime, its termination, the leader's exit, and what is said about it all in DONE.

The leader's exit is what ``waitpid`` says; end of output is something else. What a background child keeps open after that delays
the end by DONE_DRAIN_SECONDS at most: it is asked to go half-way through, and killed before the time is over.
"""

import os
import signal
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Final

from controller_client.control_group import SessionGroup
from controller_client.process_tree import ProcessInfo, own_children, read_process, session_members
from controller_client.protocol.limits import DONE_DRAIN_SECONDS, TERMINATE_GRACE_SECONDS
from controller_client.protocol.messages import EndReason, Failure, InteractiveCmdDone, IoMode, StreamFinal, TerminateCmd
from controller_client.protocol.signal_names import name_of_signal, number_of_signal
from controller_client.termination import HANG_UP_AFTER_SECONDS, Termination, send_signal

NOTE_TTY_HELD: Final = "tty_held"
"""A child outlived the program and kept its terminal open; it was terminated."""
NOTE_OUTPUT_HELD: Final = "output_held"
"""The same where there are pipes instead of a terminal."""
NOTE_LEFT_RUNNING: Final = "left_running"
"""``survivors`` detached themselves from the terminal on purpose; the program ended by itself, so they were left alone."""
NOTE_NOT_REAPED: Final = "not_reaped"
"""The program could not be killed: it is stuck in the kernel, or not ours to kill."""
NOTE_UNRECORDED: Final = "unrecorded"
"""Its output was not committed in the time its project gives: it was terminated, and what it printed is still delivered."""

_ASK_AFTER_SECONDS: Final = DONE_DRAIN_SECONDS / 2
_RUSHED_GRACE_SECONDS: Final = DONE_DRAIN_SECONDS / 4
_CLOCK: Final = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)
_UNKNOWN_SIGNAL = Failure(code="UNKNOWN_SIGNAL", message="there is no signal of that name")


def lifetime_clock() -> float:
    """Seconds that go on while the host is suspended, and do not jump when its wall clock is set."""
    return time.clock_gettime(_CLOCK)


class SessionEnd:
    """Watches one leader from its start to the end of everything that belongs to it. ``now`` is monotonic seconds; never blocks.

    ``hang_up`` lets go of the program's streams, after which no output comes any more.
    """

    def __init__(
        self,
        session_id: str,
        leader_pid: int,
        *,
        io_mode: IoMode,
        lifetime_seconds: float,
        hang_up: Callable[[], None],
        group: SessionGroup | None,
        now: float,
    ) -> None:
        self._session_id = session_id
        self._leader_pid = leader_pid
        self._is_terminal = io_mode == "pty"
        self._group = group
        self._hang_up = hang_up
        self._started_at = now
        # 0 means no limit.
        self._lifetime_until = lifetime_clock() + lifetime_seconds if lifetime_seconds > 0 else None
        self._termination: Termination | None = None
        self._reason: EndReason = "exited"
        self._asked_with: int | None = None
        self._status: os.waitid_result | None = None
        self._exited_at = 0.0
        # Since when the rest of the output could have been read.
        self._drained_from = 0.0
        self._notes: list[str] = []
        self._survivors: list[str] = []
        self.is_over = False

    @property
    def is_ending(self) -> bool:
        """The leader ended, or was asked to."""
        return self.has_exited or self._termination is not None

    @property
    def has_exited(self) -> bool:
        """The leader ended; its children and its terminal may still be there."""
        return self._status is not None

    def terminate(self, command: TerminateCmd, now: float) -> Failure | None:
        """Signal every process of the session; with ``escalate`` see to it that none remains."""
        number = number_of_signal(command.signal)
        if number is None:
            return _UNKNOWN_SIGNAL
        if not self.has_exited and self._reason == "exited":
            self._asked_with = number
            if command.escalate:
                self._reason = "terminated"
        if not command.escalate:
            send_signal(self._members(), number)
        elif self._termination is None:
            self._begin_termination(number, command.grace_seconds, self._hang_up_after() if number == signal.SIGTERM else None, now)
        return None

    def give_up(self, now: float) -> None:
        """What it prints is not recorded in time: it ends, unless it is ending already."""
        if not self.is_ending:
            self._reason = "terminated"
            self._notes.append(NOTE_UNRECORDED)
            self._begin_termination(signal.SIGTERM, TERMINATE_GRACE_SECONDS, self._hang_up_after(), now)

    def interrupt(self) -> None:
        """SIGINT to every process of the session, as ctrl-c on a terminal is to its foreground: what comes of it is theirs to decide."""
        send_signal(self._members(), signal.SIGINT)

    def reap(self, now: float) -> None:
        """Some child changed. The leader stays a zombie until ``release``, so that its number cannot be reused meanwhile."""
        if self._status is None:
            with suppress(ChildProcessError):
                self._status = os.waitid(os.P_PID, self._leader_pid, os.WEXITED | os.WNOHANG | os.WNOWAIT)
            if self._status is not None:
                self._exited_at = self._drained_from = now
        for pid in own_children():
            if pid != self._leader_pid:
                with suppress(ChildProcessError):
                    os.waitpid(pid, os.WNOHANG)
        if self._termination is not None:
            self._termination.next_look_at = now

    def advance(self, now: float, *, is_output_open: bool, is_paused: bool) -> None:
        """Take whatever step is due. ``is_paused``: output is not read now, so that it is open proves nothing."""
        if self.is_over:
            return
        if is_paused:
            self._drained_from = now
        if self._lifetime_until is not None and self._termination is None and lifetime_clock() >= self._lifetime_until:
            self._reason = self._reason if self.has_exited else "timed_out"
            self._begin_termination(signal.SIGTERM, TERMINATE_GRACE_SECONDS, self._hang_up_after(), now)
        if self._is_tty_held(now, is_output_open=is_output_open):
            self._notes.append(NOTE_TTY_HELD if self._is_terminal else NOTE_OUTPUT_HELD)
            self._begin_termination(signal.SIGTERM, _RUSHED_GRACE_SECONDS, 0.0 if self._is_terminal else None, now)
        if self._termination is not None and not self._termination.is_finished and now >= self._termination.next_look_at:
            self._termination.advance(now)
        self.is_over = self._is_complete(now, is_output_open=is_output_open)

    def deadline(self) -> float | None:
        """When ``advance`` has something to do although nothing happens."""
        if self.is_over:
            return None
        times: list[float] = []
        if self._termination is not None and not self._termination.is_finished:
            times.append(self._termination.next_look_at)
        elif self.has_exited:
            times.append(self._drained_from + (DONE_DRAIN_SECONDS if self._termination else _ASK_AFTER_SECONDS))
        elif self._lifetime_until is not None and self._termination is None:
            times.append(time.monotonic() + max(0.0, self._lifetime_until - lifetime_clock()))
        return min(times, default=None)

    def done(self, streams: list[StreamFinal], now: float) -> InteractiveCmdDone:
        """The whole story, once ``is_over``."""
        self._note_what_is_left()
        exit_code, ended_by = self._exit()
        return InteractiveCmdDone(
            session_id=self._session_id,
            end_reason=self._end_reason(),
            exit_code=exit_code,
            signal=ended_by,
            streams=streams,
            survivors=self._survivors,
            notes=self._notes,
            duration_seconds=round((self._exited_at or now) - self._started_at, 6),
        )

    def release(self) -> None:
        """Reap the leader: from here on its number may belong to somebody else."""
        with suppress(ChildProcessError):
            os.waitpid(self._leader_pid, os.WNOHANG)
        if self._group is not None:
            self._group.remove()

    def _begin_termination(self, number: int, grace_seconds: float, hang_up_after_seconds: float | None, now: float) -> None:
        self._termination = Termination(
            self._members,
            self._hang_up,
            grace_seconds=grace_seconds,
            hang_up_after_seconds=hang_up_after_seconds,
            kill_at_once=self._group.kill if self._group is not None else None,
        )
        self._termination.begin(number, now)

    def _hang_up_after(self) -> float | None:
        """Interactive shells ignore TERM, not the loss of their terminal; without one there is nothing to lose."""
        return HANG_UP_AFTER_SECONDS if self._is_terminal else None

    def _members(self) -> list[ProcessInfo]:
        grouped = self._group.pids() if self._group is not None else ()
        return session_members(self._session_id, roots=(os.getpid(),), terminal_session=self._leader_pid, also=grouped)

    def _is_tty_held(self, now: float, *, is_output_open: bool) -> bool:
        return self.has_exited and is_output_open and self._termination is None and now >= self._drained_from + _ASK_AFTER_SECONDS

    def _is_complete(self, now: float, *, is_output_open: bool) -> bool:
        if self._termination is not None and not self._termination.is_finished:
            return False
        if not self.has_exited:
            if self._termination is None:
                return False
            # Its death may be seen in the process table before SIGCHLD is.
            self.reap(now)
            return not self.has_exited and bool(self._termination.survivors)
        return not is_output_open or now >= self._drained_from + DONE_DRAIN_SECONDS

    def _note_what_is_left(self) -> None:
        if not self.has_exited:
            self._notes.append(NOTE_NOT_REAPED)
        if self._termination is not None:
            self._survivors = self._termination.survivors
            return
        below = [process for pid in own_children() if pid != self._leader_pid and (process := read_process(pid)) is not None]
        self._survivors = [process.label for process in below if process.state not in {"Z", "X"}]
        if self._survivors:
            self._notes.append(NOTE_LEFT_RUNNING)

    def _exit(self) -> tuple[int | None, str | None]:
        """Exit code, or the name of the signal that ended the leader; for one that cannot be killed, the one we sent."""
        if self._status is None:
            return None, "SIGKILL"
        if self._status.si_code == os.CLD_EXITED:
            return self._status.si_status, None
        return None, name_of_signal(self._status.si_status)

    def _end_reason(self) -> EndReason:
        if self._reason == "exited" and self._asked_with is not None and self._exit()[1] == name_of_signal(self._asked_with):
            return "terminated"
        return self._reason
