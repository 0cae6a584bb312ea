"""The end of a session: lifetime, termination, exit of the leader, and DONE, which tells of them.

The leader is the program that was started. It has exited when ``waitpid`` says so; the end of its
output is something else. A background child that keeps the output open after that delays the end by
DONE_DRAIN_SECONDS at most: half-way through it is asked to end, and it is killed before the time is
over. What has let go of the output goes on, and is named unless it is on its way out.
"""

import os
import signal
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Final

from controller_client.holder.lifetime import Lifetime
from controller_client.protocol.limits import DONE_DRAIN_SECONDS, TERMINATE_GRACE_SECONDS
from controller_client.protocol.messages import (
    EndReason,
    Failure,
    InteractiveCmdDone,
    IoMode,
    StreamFinal,
    TerminateCmd,
)
from controller_client.protocol.signal_names import name_of_signal, number_of_signal
from controller_client.protocol.values import NOTE_LEFT_RUNNING, NOTE_LEFT_UNKNOWN
from controller_client.system.boot import host_time, lifetime_clock
from controller_client.system.control_group import SessionGroup
from controller_client.system.process_tree import (
    DEAD_STATES,
    ProcessInfo,
    hidden_children,
    own_children,
    read_process,
    session_members,
)
from controller_client.system.termination import (
    HANG_UP_AFTER_SECONDS,
    MAX_SURVIVORS,
    Termination,
    send_signal,
)

NOTE_TTY_HELD: Final = "tty_held"
"""A child outlived the program and kept its terminal open; it was terminated."""
NOTE_OUTPUT_HELD: Final = "output_held"
"""A child outlived the program and kept its pipes open; it was terminated."""
NOTE_NOT_REAPED: Final = "not_reaped"
"""The program could not be killed: it is stuck in the kernel, or not ours to kill."""
NOTE_UNRECORDED: Final = "unrecorded"
"""Output was not committed in the time its project gives, so the program was terminated.

What it printed is still delivered.
"""

LOOK_AGAIN_SECONDS: Final = 0.05
"""Pause after a look at processes that failed."""
UNKNOWN_AFTER_SECONDS: Final = 2.0
"""A session waits so long for a look at what its program left; then DONE says: unknown."""
LOOKS_BEFORE_NAMING: Final = 5
"""What a program left is named if it is still there after so many pauses between looks.

What is on its way out ends meanwhile, such as the monitor that ``sudo`` has beside its program, and
its end leads to a look at once. If nothing is left, nobody waits. Looks are counted, not time: on a
busy host such a process gets the processor as late as this one.
"""
_ASK_AFTER_SECONDS: Final = DONE_DRAIN_SECONDS / 2
_RUSHED_GRACE_SECONDS: Final = DONE_DRAIN_SECONDS / 4
_UNKNOWN_SIGNAL = Failure(code="UNKNOWN_SIGNAL", message="there is no signal of that name")


class SessionEnd:
    """Watches one leader from its start to the end of everything that belongs to it.

    ``now`` is monotonic seconds; never blocks. ``hang_up`` closes the program's streams, after
    which no output comes any more. ``lives_from`` is the moment of ``lifetime_clock`` before the
    leader began: it may stop this process at once.
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
        lives_from: float,
        now: float,
    ) -> None:
        self._session_id = session_id
        self._leader_pid = leader_pid
        self._is_terminal = io_mode == "pty"
        self._group = group
        self._hang_up = hang_up
        self._started_at = now
        # 0 means no limit.
        self.lifetime = Lifetime(lifetime_seconds, lives_from) if lifetime_seconds > 0 else None
        self._termination: Termination | None = None
        self._reason: EndReason = "exited"
        self._asked_with: set[int] = set()
        self._status: os.waitid_result | None = None
        self._exited_at = 0.0
        # The moment from which on the rest of the output could have been read.
        self._drained_from = 0.0
        self._is_drained = False
        self._notes: list[str] = []
        self._survivors: list[str] = []
        # Signals that could not be sent yet, because their receivers could not be listed.
        self._owed_signals: list[int] = []
        self._look_again_at: float | None = None
        self._unseen_since: float | None = None
        self._looks_before_naming = LOOKS_BEFORE_NAMING
        self._next_left_look_at = 0.0
        self.is_over = False

    @property
    def is_ending(self) -> bool:
        """True if the leader ended, or was asked to."""
        return self.has_exited or self._termination is not None

    @property
    def has_exited(self) -> bool:
        """True if the leader ended; its children and its terminal may still be there."""
        return self._status is not None

    def terminate(self, command: TerminateCmd, now: float) -> Failure | None:
        """Signal every process of the session; with ``escalate`` see to it that none remains."""
        number = number_of_signal(command.signal)
        if number is None:
            return _UNKNOWN_SIGNAL
        if not self.has_exited and self._reason == "exited":
            self._asked_with.add(number)
            if command.escalate:
                self._reason = "terminated"
        if not command.escalate:
            self._signal(number, now)
        elif self._termination is None:
            self._begin_termination(
                number,
                command.grace_seconds,
                self._hang_up_after() if number == signal.SIGTERM else None,
                now,
            )
        return None

    def give_up(self, now: float) -> None:
        """Terminate a program whose output is not recorded in time, unless it is ending already."""
        if not self.is_ending:
            self._reason = "terminated"
            self._notes.append(NOTE_UNRECORDED)
            self._begin_termination(
                signal.SIGTERM, TERMINATE_GRACE_SECONDS, self._hang_up_after(), now
            )

    def interrupt(self) -> None:
        """Send SIGINT to every process of the session, as ctrl-c does to the foreground.

        The processes decide what to do with it.
        """
        self._signal(signal.SIGINT, time.monotonic())

    def reap(self, now: float) -> None:
        """Note the exit of the leader, and reap other children: some child changed.

        The leader stays a zombie until ``release``, so that its pid cannot be reused meanwhile.
        """
        if self._status is None:
            with suppress(ChildProcessError):
                self._status = os.waitid(
                    os.P_PID, self._leader_pid, os.WEXITED | os.WNOHANG | os.WNOWAIT
                )
            if self._status is not None:
                self._exited_at = self._drained_from = now
        # Children that cannot be listed now are reaped when the next child changes.
        with suppress(OSError):
            for pid in own_children():
                if pid != self._leader_pid:
                    with suppress(ChildProcessError):
                        os.waitpid(pid, os.WNOHANG)
        if self._termination is not None:
            self._termination.next_look_at = now

    def advance(self, now: float, *, is_output_open: bool, is_paused: bool) -> None:
        """Take whatever step is due.

        ``is_paused``: output is not read now, so an open output proves nothing.
        """
        if self.is_over:
            return
        if is_paused:
            self._drained_from = now
        if (
            self.lifetime is not None
            and self._termination is None
            and self.lifetime.is_over(lifetime_clock())
        ):
            self._reason = self._reason if self.has_exited else "timed_out"
            self._begin_termination(
                signal.SIGTERM, TERMINATE_GRACE_SECONDS, self._hang_up_after(), now
            )
        if self._is_tty_held(now, is_output_open=is_output_open):
            self._notes.append(NOTE_TTY_HELD if self._is_terminal else NOTE_OUTPUT_HELD)
            self._begin_termination(
                signal.SIGTERM, _RUSHED_GRACE_SECONDS, 0.0 if self._is_terminal else None, now
            )
        if (
            self._termination is not None
            and not self._termination.is_finished
            and now >= self._termination.next_look_at
        ):
            self._termination.advance(now)
        if self._look_again_at is not None and now >= self._look_again_at:
            self._look_again_at = None
            owed, self._owed_signals = self._owed_signals, []
            for number in owed:
                self._signal(number, now)
        self.is_over = self._is_complete(
            now, is_output_open=is_output_open
        ) and self._is_what_is_left_noted(now)

    def deadline(self) -> float | None:
        """Return when ``advance`` has something to do although nothing happens."""
        if self.is_over:
            return None
        times: list[float] = []
        if self._termination is not None and not self._termination.is_finished:
            times.append(self._termination.next_look_at)
        elif self._is_drained:
            times.append(self._next_left_look_at)
        elif self.has_exited:
            times.append(
                self._drained_from
                + (DONE_DRAIN_SECONDS if self._termination else _ASK_AFTER_SECONDS)
            )
        elif self.lifetime is not None and self._termination is None:
            times.append(time.monotonic() + max(0.0, self.lifetime.ends_at - lifetime_clock()))
        if self._look_again_at is not None:
            times.append(self._look_again_at)
        return min(times, default=None)

    def done(self, streams: list[StreamFinal], now: float) -> InteractiveCmdDone:
        """Return the message that tells how the session ended, once it ``is_over``."""
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
            at=host_time(),
        )

    def release(self) -> None:
        """Reap the leader: from here on its pid may belong to another process."""
        with suppress(ChildProcessError):
            os.waitpid(self._leader_pid, os.WNOHANG)
        if self._group is not None:
            self._group.remove()

    def _begin_termination(
        self, number: int, grace_seconds: float, hang_up_after_seconds: float | None, now: float
    ) -> None:
        self._termination = Termination(
            self._members,
            self._hang_up,
            grace_seconds=grace_seconds,
            hang_up_after_seconds=hang_up_after_seconds,
            kill_at_once=self._group.kill if self._group is not None else None,
            signal_unseen=self._signal_leaders_group,
            is_known_unseen=self._is_of_leaders_group,
        )
        self._termination.begin(number, now)

    def _hang_up_after(self) -> float | None:
        """Return the time from TERM to the loss of the terminal, which shells do not ignore.

        None on pipes: there is no terminal to lose.
        """
        return HANG_UP_AFTER_SECONDS if self._is_terminal else None

    def _signal(self, number: int, now: float) -> None:
        """Signal every process of the session; later, if they cannot be listed now."""
        try:
            send_signal(self._members(), number)
        except OSError:
            self._owed_signals.append(number)
            self._look_again_at = now + LOOK_AGAIN_SECONDS

    def _signal_leaders_group(self, number: int) -> None:
        """Signal the leader's group without a look: its pid is not reused before ``release``."""
        with suppress(OSError):
            os.killpg(self._leader_pid, number)

    def _is_of_leaders_group(self, process: ProcessInfo) -> bool:
        with suppress(OSError):
            return os.getpgid(process.pid) == self._leader_pid
        return False

    def _members(self) -> list[ProcessInfo]:
        """List the live processes of the session. Raises OSError."""
        grouped = self._group.pids() if self._group is not None else ()
        members = session_members(
            self._session_id, roots=(os.getpid(),), terminal_session=self._leader_pid, also=grouped
        )
        return [*members, *hidden_children({process.pid for process in members})]

    def _is_tty_held(self, now: float, *, is_output_open: bool) -> bool:
        return (
            self.has_exited
            and is_output_open
            and not self._is_drained
            and self._termination is None
            and now >= self._drained_from + _ASK_AFTER_SECONDS
        )

    def _is_complete(self, now: float, *, is_output_open: bool) -> bool:
        if self._termination is not None and not self._termination.is_finished:
            return False
        if not self.has_exited:
            if self._termination is None:
                return False
            # The death of the leader may be seen in the process table before SIGCHLD arrives.
            self.reap(now)
            return not self.has_exited and bool(self._termination.survivors)
        if not is_output_open or now >= self._drained_from + DONE_DRAIN_SECONDS:
            # A terminal that is opened again, while it is seen what is left, does not count.
            self._is_drained = True
        return self._is_drained

    def _is_what_is_left_noted(self, now: float) -> bool:
        """Note what the program left, once that can be seen or was unknown for too long.

        Returns False if a later look has to find out.
        """
        if not self.has_exited:
            self._notes.append(NOTE_NOT_REAPED)
        if self._termination is not None:
            self._survivors = self._termination.survivors
            return True
        try:
            left = self._left()
        except OSError:
            self._unseen_since = now if self._unseen_since is None else self._unseen_since
            if now < self._unseen_since + UNKNOWN_AFTER_SECONDS:
                self._next_left_look_at = now + LOOK_AGAIN_SECONDS
                return False
            self._notes.append(NOTE_LEFT_UNKNOWN)
            return True
        if left and self._may_be_on_its_way_out(now):
            return False
        self._survivors = left[:MAX_SURVIVORS]
        if self._survivors:
            self._notes.append(NOTE_LEFT_RUNNING)
        return True

    def _left(self) -> list[str]:
        """Return the live children that the leader left to this process. Raises OSError."""
        below = [
            process
            for pid in own_children()
            if pid != self._leader_pid and (process := read_process(pid)) is not None
        ]
        below += hidden_children({process.pid for process in below})
        return [process.label for process in below if process.state not in DEAD_STATES]

    def _may_be_on_its_way_out(self, now: float) -> bool:
        """Return whether what is left has to be looked at again before it is named."""
        if now >= self._next_left_look_at:
            self._looks_before_naming -= 1
            self._next_left_look_at = now + LOOK_AGAIN_SECONDS
        return self._looks_before_naming >= 0

    def _exit(self) -> tuple[int | None, str | None]:
        """Return the exit code of the leader, or the name of the signal that ended it.

        For a leader that could not be killed, the signal is the one that was sent.
        """
        if self._status is None:
            return None, "SIGKILL"
        if self._status.si_code == os.CLD_EXITED:
            return self._status.si_status, None
        return None, name_of_signal(self._status.si_status)

    def _end_reason(self) -> EndReason:
        if self._reason == "exited" and self._exit()[1] in [*map(name_of_signal, self._asked_with)]:
            return "terminated"
        return self._reason
