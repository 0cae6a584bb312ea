"""Ending every process of a session: asked first, then hung up on, then killed; what survives is named.

The steps, ``TERM`` → ``HUP`` (interactive shells ignore TERM) → after the grace ``CONT`` + ``KILL`` again and again, so that nothing that
forks in between escapes. Who belongs to the session is looked up at every step. Processes of another user (``sudo``) may not be
signalled; the hang-up of their terminal reaches them all the same.
"""

import os
import select
import signal
import time
from collections.abc import Callable, Iterable
from typing import Final, Literal

from controller_client.process_tree import ProcessInfo, read_process, session_members

HANG_UP_AFTER_SECONDS: Final = 0.2
# After the first KILL; a process that is still there then is stuck in the kernel or not ours to kill.
KILL_SECONDS: Final = 2.0
_LOOK_EVERY_SECONDS: Final = (0.01, 0.02, 0.05)
MAX_SURVIVORS: Final = 32

Step = Literal["asked", "hung_up", "killing", "finished"]


def send_signal(processes: Iterable[ProcessInfo], number: int) -> list[ProcessInfo]:
    """Signal each process that is still the same one; returns those that we are not permitted to signal."""
    return [process for process in processes if not _signal_one(process, number)]


class Termination:
    """One orderly end of a session's processes, advanced by its owner's loop; never blocks.

    ``members`` lists the session's live processes. ``hang_up`` closes the terminal; it is called once, before the first KILL is due,
    and only then, because output cannot be read afterwards. ``kill_at_once`` kills all of them in one step, where the host can do that.
    """

    def __init__(
        self,
        members: Callable[[], list[ProcessInfo]],
        hang_up: Callable[[], None],
        *,
        grace_seconds: float,
        hang_up_after_seconds: float | None,
        kill_at_once: Callable[[], None] | None = None,
    ) -> None:
        self._members = members
        self._hang_up = hang_up
        self._grace_seconds = max(0.0, grace_seconds)
        self._hang_up_after_seconds = hang_up_after_seconds
        self._step: Step = "asked"
        self._kill_at_once = kill_at_once
        self._began_at = 0.0
        self._kill_until = 0.0
        self._looks = 0
        self.next_look_at = 0.0
        self._left: list[ProcessInfo] = []

    @property
    def is_finished(self) -> bool:
        """Nothing is left, or nothing more can be done."""
        return self._step == "finished"

    @property
    def survivors(self) -> list[str]:
        """What is still there after all that, as ``name[pid]``."""
        return [process.label for process in self._left[:MAX_SURVIVORS]]

    def begin(self, number: int, now: float) -> None:
        """Send the first signal. Stopped processes are woken, or they could not follow it."""
        self._began_at = now
        members = self._members()
        send_signal(members, number)
        send_signal(members, signal.SIGCONT)
        self._settle(members, now)

    def advance(self, now: float) -> None:
        """Look, and take the next step if it is due."""
        members = self._members()
        if self._step == "asked" and self._hang_up_after_seconds is not None and now >= self._began_at + self._hang_up_after_seconds:
            self._step = "hung_up"
            send_signal(members, signal.SIGHUP)
        if self._step in {"asked", "hung_up"} and now >= self._began_at + self._grace_seconds:
            self._step = "killing"
            self._kill_until = now + KILL_SECONDS
            self._looks = 0
        if self._step == "killing" and self._kill_at_once is not None:
            self._kill_at_once()
        if self._step == "killing" and send_signal(members, signal.SIGKILL):
            self._hang_up()
        self._settle(members, now)

    def _settle(self, members: list[ProcessInfo], now: float) -> None:
        self._left = members
        if not members or (self._step == "killing" and now >= self._kill_until):
            self._step = "finished"
        self.next_look_at = now + _LOOK_EVERY_SECONDS[min(self._looks, len(_LOOK_EVERY_SECONDS) - 1)]
        self._looks += 1


def kill_leftovers(session_id: str, *, timeout_seconds: float = KILL_SECONDS) -> list[str]:
    """Kill every process that carries the session's cookie; returns those that are still there after ``timeout_seconds``. Blocks."""
    deadline = time.monotonic() + timeout_seconds
    while members := session_members(session_id, roots=(), terminal_session=None):
        if time.monotonic() >= deadline:
            break
        send_signal(members, signal.SIGKILL)
        _wait_for_any(members, 0.05)
    return [process.label for process in members[:MAX_SURVIVORS]]


def _signal_one(process: ProcessInfo, number: int) -> bool:
    current = read_process(process.pid)
    if process.started and (current is None or current.started != process.started):
        return True
    try:
        os.kill(process.pid, number)
    except ProcessLookupError:
        return True
    except PermissionError:
        return False
    return True


def _wait_for_any(members: list[ProcessInfo], seconds: float) -> None:
    """Until one of them ends, or the time is over."""
    descriptors = []
    if hasattr(os, "pidfd_open"):
        for process in members:
            try:
                descriptors.append(os.pidfd_open(process.pid))
            except OSError:
                continue
    try:
        select.select(descriptors, (), (), seconds)
    finally:
        for descriptor in descriptors:
            os.close(descriptor)
