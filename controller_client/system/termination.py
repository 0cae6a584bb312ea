"""Ends every process of a session: TERM, then HUP, then KILL; names the survivors.

Interactive shells ignore ``TERM``, so ``HUP`` follows. After the grace period ``KILL`` is sent
again and again, so that nothing that forks in between escapes. Every step looks up anew which
processes belong to the session. Processes of another user (``sudo``) may not be signalled; closing
their terminal reaches them all the same. While the processes cannot be listed, for want of a
descriptor, the end is put off, never taken for reached.
"""

import os
import select
import signal
import time
from collections.abc import Callable, Iterable
from itertools import count
from typing import Final, Literal, NamedTuple

from controller_client.system.adoption import Left
from controller_client.system.process_tree import ProcessInfo, is_same, session_members

HANG_UP_AFTER_SECONDS: Final = 0.2
# Counted from the first KILL. A process that is still there then is stuck in the kernel or not ours
# to kill.
KILL_SECONDS: Final = 2.0
# A process that was stopped itself, or got no processor, has looked less often by then. It looks at
# least so many times.
_LEAST_KILLS: Final = 10
_MOST_WAITED_FOR: Final = 64
_LOOK_EVERY_SECONDS: Final = (0.01, 0.02, 0.05)
MAX_SURVIVORS: Final = 32

Step = Literal["asked", "hung_up", "killing", "finished"]


class Sent(NamedTuple):
    """The processes that a signal did not reach.

    ``refused``: this user may not signal them. ``unknown``: they could not be looked at.
    """

    refused: list[ProcessInfo]
    unknown: list[ProcessInfo]


def send_signal(processes: Iterable[ProcessInfo], number: int) -> Sent:
    """Signal each process whose pid was not reused; return those that were not reached."""
    sent = Sent([], [])
    for process in processes:
        try:
            if not _signal_one(process, number):
                sent.refused.append(process)
        except OSError:
            sent.unknown.append(process)
    return sent


class Termination:
    """One orderly end of a session's processes, advanced by its owner's loop; never blocks.

    ``members`` lists the session's live processes; it raises OSError while they cannot be looked
    at. ``hang_up`` closes the terminal. It is called as late as possible, when KILL was refused,
    because output cannot be read afterwards. ``kill_at_once`` kills all of them in one step, where
    the host can do that. ``signal_unseen`` signals the processes that are known without a look, and
    ``is_known_unseen`` tells whether a process is one of them.
    """

    def __init__(
        self,
        members: Callable[[], list[ProcessInfo]],
        hang_up: Callable[[], None],
        *,
        grace_seconds: float,
        hang_up_after_seconds: float | None,
        kill_at_once: Callable[[], None] | None = None,
        signal_unseen: Callable[[int], None] = lambda _: None,
        is_known_unseen: Callable[[ProcessInfo], bool] = lambda _: False,
    ) -> None:
        self._members = members
        self._hang_up = hang_up
        self._grace_seconds = max(0.0, grace_seconds)
        self._hang_up_after_seconds = hang_up_after_seconds
        self._step: Step = "asked"
        self._kill_at_once = kill_at_once
        self._signal_unseen = signal_unseen
        self._is_known_unseen = is_known_unseen
        self._has_asked_unseen = False
        self._first_number = 0
        # Processes that the first signal still has to reach; None: all of them.
        self._unasked: list[ProcessInfo] | None = None
        self._began_at = 0.0
        self._kill_until = 0.0
        self._looks = 0
        self.next_look_at = 0.0
        self._left: list[ProcessInfo] = []

    @property
    def is_finished(self) -> bool:
        """True once nothing is left, or nothing more can be done."""
        return self._step == "finished"

    @property
    def survivors(self) -> list[str]:
        """The processes that are still there after the last step, as ``name[pid]``."""
        return [process.label for process in self._left[:MAX_SURVIVORS]]

    def begin(self, number: int, now: float) -> None:
        """Send the first signal. Stopped processes are continued, or they could not obey it."""
        self._began_at, self._first_number = now, number
        members = self._look()
        if members is None:
            self._signal_unseen(number)
            self._has_asked_unseen = True
        else:
            self._ask(members)
        self._settle(members, now)

    def advance(self, now: float) -> None:
        """Look, and take the next step if it is due."""
        members = self._look()
        if members is not None and (self._unasked is None or self._unasked):
            self._ask(members)
        is_hang_up_due = (
            self._hang_up_after_seconds is not None
            and now >= self._began_at + self._hang_up_after_seconds
        )
        if self._step == "asked" and is_hang_up_due and members is not None:
            self._step = "hung_up"
            send_signal(members, signal.SIGHUP)
        if self._step in {"asked", "hung_up"} and now >= self._began_at + self._grace_seconds:
            self._step = "killing"
            self._kill_until = now + KILL_SECONDS
            self._looks = 0
        if self._step == "killing" and self._kill_at_once is not None:
            self._kill_at_once()
        if self._step == "killing" and members is None:
            self._signal_unseen(signal.SIGKILL)
        elif self._step == "killing" and members and send_signal(members, signal.SIGKILL).refused:
            self._hang_up()
        self._settle(members, now)

    def _look(self) -> list[ProcessInfo] | None:
        """Return the live processes; None if they cannot be listed now."""
        try:
            return self._members()
        except OSError:
            return None

    def _ask(self, members: list[ProcessInfo]) -> None:
        """Send the first signal, once to each: a second one may mean something else to it."""
        if self._unasked is None:
            self._unasked = [
                process
                for process in members
                if not (self._has_asked_unseen and self._is_known_unseen(process))
            ]
        self._unasked = send_signal(self._unasked, self._first_number).unknown
        send_signal(members, signal.SIGCONT)

    def _settle(self, members: list[ProcessInfo] | None, now: float) -> None:
        if members is not None:
            self._left = members
        elif self._step == "killing":
            # The processes get the full time from the moment when they can be seen again.
            self._kill_until = now + KILL_SECONDS
        if members is not None and (
            not members
            or (self._step == "killing" and now >= self._kill_until and self._looks >= _LEAST_KILLS)
        ):
            self._step = "finished"
        self.next_look_at = (
            now + _LOOK_EVERY_SECONDS[min(self._looks, len(_LOOK_EVERY_SECONDS) - 1)]
        )
        self._looks += 1


class Vanished:
    """The processes that had ended when they were looked at, although they had just been named.

    Each may have forked before it ended, and its child is named in the next look at the earliest.
    """

    def __init__(self) -> None:
        self._seen: set[str] = set()

    def see(self, named: Iterable[ProcessInfo]) -> bool:
        """Return whether one of them has ended that was not seen to have ended before.

        Raises OSError.
        """
        ended = {process.mark for process in named if not is_same(process)}
        is_new = not ended <= self._seen
        self._seen |= ended
        return is_new


_NOTHING_KNOWN: Final = Left([], is_all=False)


def kill_leftovers(
    session_id: str,
    known: Callable[[], Left] = lambda: _NOTHING_KNOWN,
    *,
    timeout_seconds: float = KILL_SECONDS,
) -> list[str]:
    """Kill every process of a session without a holder; return the survivors as ``name[pid]``.

    These are the processes with its cookie, those that are ``known``, and what descends from them.
    Survivors are still there after ``timeout_seconds`` and several looks. Blocks. Raises OSError
    when the processes cannot be looked at now.
    """
    deadline = time.monotonic() + timeout_seconds
    vanished = Vanished()
    for looks in count():
        named, _, is_settled = known()
        is_settled = not vanished.see(named) and is_settled
        also = [process.pid for process in named if is_same(process)]
        members = session_members(session_id, roots=(), terminal_session=None, also=also)
        is_late = looks >= _LEAST_KILLS and time.monotonic() >= deadline
        if is_late or (is_settled and not members):
            break
        send_signal(members, signal.SIGKILL)
        _wait_for_any(members, 0.05)
    return [process.label for process in members[:MAX_SURVIVORS]]


def _signal_one(process: ProcessInfo, number: int) -> bool:
    """Return False if this user may not signal the process.

    Raises OSError if it cannot be told whether the pid was reused.
    """
    if process.started and not is_same(process):
        return True
    try:
        os.kill(process.pid, number)
    except ProcessLookupError:
        return True
    except PermissionError:
        return False
    return True


def _wait_for_any(members: list[ProcessInfo], seconds: float) -> None:
    """Wait until one of the first processes ends, or the time is over."""
    descriptors = []
    # select cannot wait for a descriptor above 1023, as one of a daemon with many sessions may be.
    poll = select.poll()
    if hasattr(os, "pidfd_open"):
        for process in members[:_MOST_WAITED_FOR]:
            try:
                descriptors.append(os.pidfd_open(process.pid))
            except OSError:
                continue
            poll.register(descriptors[-1], select.POLLIN)
    try:
        poll.poll(seconds * 1000)
    finally:
        for descriptor in descriptors:
            os.close(descriptor)
