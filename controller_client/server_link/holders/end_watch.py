"""Ends a session when it has to end, even if the session's holder does not act.

A holder ends its session when the server asks for that, and when the lifetime is over. But a
program of the same user can stop its holder, or hold the holder up in other ways. So the daemon
keeps the time as well, with or without a connection to the server. When the end is due, these steps
follow:

1. The holder has its grace. The daemon continues the holder (SIGCONT) whenever it finds it stopped.
2. Then the daemon kills every process below the holder: what stops the holder again and again is
   usually there. A process cannot leave its holder while the holder lives, stopped or not.
3. Then the daemon kills the holder, and ends what is left as it does after any holder that died.

A session whose directory is gone or spoiled before its end is ended at once when nobody reaches its
holder.
A holder that is stopped while nothing has to end stays stopped.

Another process of the user can command a holder, and make it report a longer lifetime. So what a
holder reports counts up to the lifetime in START and the pauses that the server allowed. A daemon
that began later knows neither: it takes what it finds first, and bounds what comes after.
"""

import asyncio
import logging
import math
import os
import signal
from contextlib import suppress
from typing import Final

from controller_client.protocol.limits import TERMINATE_GRACE_SECONDS
from controller_client.protocol.messages import (
    CommandAck,
    FromHolder,
    InteractiveCmdDone,
    PauseLifetime,
    SessionSummary,
    Started,
    TerminateCmd,
)
from controller_client.server_link.errors import HolderUnreachable
from controller_client.server_link.holders.aftermath import Aftermath
from controller_client.server_link.holders.client import HolderClient
from controller_client.server_link.holders.known_holder import KnownHolder
from controller_client.server_link.holders.outage import Outage
from controller_client.server_link.refusals import Command
from controller_client.session_files.directory import SessionDirectory
from controller_client.session_files.one_shot import StartCommand, as_start
from controller_client.system.boot import boot_id, lifetime_clock
from controller_client.system.process_tree import read_process
from controller_client.system.termination import send_signal

logger = logging.getLogger(__name__)

# A holder has this long to end its session after the grace. One with a survivor needs 2 s.
ACT_SECONDS: Final = 5.0
# A holder has this long to report the end after every process below it was killed.
LAST_SECONDS: Final = 10.0
# A holder that is found stopped this often in LAST_SECONDS is being stopped in a loop.
MANY_STOPS: Final = 4
# A holder on a busy host begins a lifetime so much later than the daemon takes it to begin.
LATE_SECONDS: Final = 60.0
# The lifetime clock is read this often: timers stop while the host is suspended, it does not.
CLOCK_SECONDS: Final = 60.0
# The first look is late: hardly any session takes that long to end.
_LOOK_SECONDS: Final = (0.1, 0.1, 0.2, 0.5)
_STOPPED: Final = "T"
_TICKS: Final = os.sysconf("SC_CLK_TCK")
_OUTAGE = Outage(logger)


class EndWatch:
    """The end of one session, watched for as long as the daemon knows the session.

    The watch ends with INTERACTIVE_CMD_DONE, because callers see a running session until then.
    """

    def __init__(self, aftermath: Aftermath) -> None:
        self._directory = aftermath.directory
        self._session_id = aftermath.directory.session_id
        self._aftermath = aftermath
        self.holder = KnownHolder(aftermath)
        self._vanishing: asyncio.Task[InteractiveCmdDone] | None = None
        # A time of the lifetime clock. None: there is no limit, or the limit is not known yet.
        self._ends_at: float | None = None
        # The latest end that a report is believed, without the pauses. It is lower once a first
        # report has told when the holder began.
        self._latest = math.inf
        self._has_report = False
        # The longest time of all pauses together that the server allowed.
        self._pause_seconds = 0.0
        self._timer: asyncio.TimerHandle | None = None
        # The session has its directory, or had it. Before that, its absence says nothing.
        self._has_begun = False
        self._is_asked = False
        # The grace of a TERMINATE_CMD that came before the session had its directory.
        self._early_grace = math.inf
        # The holder knows how the program ended. The server may not know it yet.
        self._is_done = False
        # The holder was found not to act. What it leaves is being ended.
        self.is_cleaning_up = False
        # A time of the event loop's clock, until which the present step waits for the holder.
        self._until = math.inf
        self._is_over = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    # ---- what the session's end depends on

    def recall(self) -> None:
        """Read the end of the lifetime from the session's files, before the holder answers."""
        self._note_beginning()
        if self._ends_at is not None or self._is_over.is_set():
            return
        try:
            self.holder.recall()
            self._ends_at = _recorded_end(self._directory)
            self._set_timer()
        except OSError as error:
            _OUTAGE.report("lifetimes of sessions cannot be read: %s", error)
            self._timer = asyncio.get_running_loop().call_later(CLOCK_SECONDS, self.recall)

    def began(self, start: StartCommand, pid: int | None) -> None:
        """Note that a holder was told to start, which its program may stop before it answers."""
        self.holder.began(start, pid)
        self._note_beginning()
        seconds = as_start(start).lifetime_seconds
        if seconds > 0 and self._ends_at is None:
            self._ends_at = lifetime_clock() + seconds
            self._latest = self._ends_at + LATE_SECONDS
            self._set_timer()

    def heard(self, said: FromHolder | SessionSummary) -> None:
        """Note a holder's message about the end or the lifetime of the session."""
        if is_end(said):
            self.stop()
        elif isinstance(said, SessionSummary | Started | CommandAck) and said.lifetime is not None:
            self._ends_at = self._believed(lifetime_clock() + said.lifetime.longest_seconds)
            self._set_timer()
        elif isinstance(said, SessionSummary):
            self._is_done = said.state == "done"

    def on_command(self, command: Command) -> None:
        """Note a TERMINATE_CMD that escalates, and a pause of the lifetime.

        Any other signal leaves the end to the program.
        """
        if isinstance(command, PauseLifetime):
            self._pause_seconds = max(self._pause_seconds, command.max_seconds)
        if isinstance(command, TerminateCmd) and command.escalate and not self._is_over.is_set():
            self._is_asked = True
            if self._has_begun:
                self._begin(command.grace_seconds)
            else:
                self._early_grace = min(self._early_grace, command.grace_seconds)

    def _believed(self, ends_at: float) -> float:
        """Return the end that a holder reports, or the latest one that there can be."""
        if not self._has_report:
            self._has_report = True
            self._latest = min(self._latest, ends_at)
        return min(ends_at, self._latest + self._pause_seconds)

    def _note_beginning(self) -> None:
        """Note that the session has its directory, and act on an end that was asked for before."""
        self._has_begun = True
        if self._is_asked and self._task is None and not self._is_over.is_set():
            self._begin(self._early_grace)

    def stop(self) -> None:
        """Watch no longer: the session has ended, or its end is on record."""
        self._is_over.set()
        self._drop_timer()

    @property
    def _is_lifetime_over(self) -> bool:
        return self._ends_at is not None and lifetime_clock() >= self._ends_at

    @property
    def _is_due(self) -> bool:
        """The session has to end, and its end is not known."""
        return not self._is_over.is_set() and (self._is_asked or self._is_lifetime_over)

    # ---- the clock

    def _drop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _set_timer(self) -> None:
        self._drop_timer()
        if self._ends_at is None or self._is_over.is_set() or self._task is not None:
            return
        delay = min(max(0.0, self._ends_at - lifetime_clock()), CLOCK_SECONDS)
        self._timer = asyncio.get_running_loop().call_later(delay, self._on_timer)

    def _on_timer(self) -> None:
        self._timer = None
        if self._is_lifetime_over:
            self._begin(TERMINATE_GRACE_SECONDS)
        else:
            self._set_timer()

    # ---- the end

    def _begin(self, grace_seconds: float) -> None:
        """Take the steps, or wait less for the first one if they are being taken."""
        loop = asyncio.get_running_loop()
        self._until = min(self._until, loop.time() + max(0.0, grace_seconds) + ACT_SECONDS)
        if self._task is None:
            self._drop_timer()
            self._task = loop.create_task(self._end())

    async def _end(self) -> None:
        try:
            await self._take_steps()
        finally:
            self._task, self._until = None, math.inf
        self._set_timer()

    async def _take_steps(self) -> None:
        self._wake_up()
        stops = await self._wait_for_holder()
        is_answered = await self._is_answered()
        if self._is_due and not (is_answered and self._is_done and not stops):
            if not self._is_done:
                logger.error(
                    "session %s is overdue and its holder does not act: killing all below the "
                    "holder",
                    self._session_id,
                )
                await self._kill_below()
            self._until = asyncio.get_running_loop().time() + LAST_SECONDS
            stops = await self._wait_for_holder()
            is_answered = await self._is_answered()
            if self._is_due and not (is_answered and self._is_done and stops < MANY_STOPS):
                logger.error(
                    "session %s is overdue and its holder does not act: killing the holder",
                    self._session_id,
                )
                await self._end_without_holder()
        if self._is_done:
            # The holder works, and keeps its last messages until a server is there.
            self.stop()

    def _wake_up(self) -> None:
        """Wake a holder that still sleeps after a suspension, so that its program has its grace."""
        if self._is_lifetime_over:
            with suppress(OSError):
                if (holder := self.holder.living()) is not None:
                    send_signal([holder], signal.SIGCHLD)

    async def _wait_for_holder(self) -> int:
        """Wait for the end of the session, at most until ``_until``; continue a stopped holder.

        Returns how often the holder was found stopped.
        """
        loop, looks, stops = asyncio.get_running_loop(), 0, 0
        while self._is_due and (left := self._until - loop.time()) > 0:
            with suppress(TimeoutError):
                await asyncio.wait_for(
                    self._is_over.wait(),
                    min(left, _LOOK_SECONDS[min(looks, len(_LOOK_SECONDS) - 1)]),
                )
            looks += 1
            if self._is_due and self._has_continued():
                stops += 1
                if stops == 1:
                    logger.warning(
                        "session %s has to end and its holder is stopped: continuing the holder",
                        self._session_id,
                    )
        return stops

    def _has_continued(self) -> bool:
        """Continue the holder if it is stopped; return whether it was."""
        try:
            holder = self.holder.living()
        except OSError as error:
            _OUTAGE.report("holders cannot be looked at: %s", error)
            return False
        if holder is None or holder.state != _STOPPED:
            return False
        send_signal([holder], signal.SIGCONT)
        return True

    async def _is_answered(self) -> bool:
        """Ask the holder for the session's state, which may be waiting there for a server.

        The holder drops the conversation with the route, and the route opens another.
        """
        if self._is_recorded():
            self.stop()
        if not self._is_due:
            return True
        try:
            client, summary = await HolderClient.open(self._directory, holder_pid=self.holder.pid)
        except HolderUnreachable:
            return False
        client.close()
        self.heard(summary)
        with suppress(OSError):
            # The program has ended, and its last output waits for the server to commit more.
            self._is_done = self._is_done or await asyncio.to_thread(self.holder.is_alone)
        return True

    def _is_recorded(self) -> bool:
        """The holder is dead and the end is on record."""
        try:
            return self.holder.living() is None and self._directory.read_done() is not None
        except OSError:
            return False

    async def _kill_below(self) -> None:
        try:
            if (holder := self.holder.living()) is not None:
                self._say_why()
                await self.holder.kill_below(holder)
        except OSError as error:
            _OUTAGE.report("processes of sessions cannot be looked at: %s", error)

    def _say_why(self) -> None:
        """Tell the holder why its program is killed.

        The holder may see the program's death before it reads TERMINATE_CMD or its clock, and would
        then tell that the program ended by itself.
        """
        try:
            self._directory.write_overdue("terminated" if self._is_asked else "timed_out")
        except OSError as error:
            _OUTAGE.report("files of sessions cannot be written: %s", error)

    async def _end_without_holder(self) -> None:
        """Retry until the end is recorded, by this watch or by the session's route."""
        self.is_cleaning_up = True
        while not self._is_over.is_set():
            try:
                if await self._is_cleaned_up():
                    break
            except FileNotFoundError:
                await self.end_vanished()
                break
            except OSError as error:
                _OUTAGE.report("sessions whose holder does not act cannot be ended: %s", error)
            await asyncio.sleep(_LOOK_SECONDS[-1])
        self.is_cleaning_up = False
        self.stop()

    def vanished(self) -> None:
        """End what is left of a session whose directory is gone or spoiled, unless it has ended.

        Nobody can find such a session any more, so it is lost.
        """
        is_ended = self._is_over.is_set() or self._is_done
        if self._vanishing is None and not is_ended and self.holder.is_directory_gone():
            self._vanishing = asyncio.get_running_loop().create_task(self.holder.end())
            self.stop()

    async def end_vanished(self) -> InteractiveCmdDone | None:
        """Do as ``vanished``; return the end of the session, None if there is nothing to tell."""
        self.vanished()
        return await asyncio.shield(self._vanishing) if self._vanishing is not None else None

    async def _is_cleaned_up(self) -> bool:
        """Kill the holder, end what it left, and record the loss. Returns False to be called again.

        Raises FileNotFoundError if the session is gone, and OSError.
        """
        if (holder := self.holder.living()) is not None:
            send_signal([holder], signal.SIGKILL)
            return False
        dead = self.holder.claim()
        if dead is None:
            return self._directory.read_done() is not None
        try:
            await self._aftermath.put_on_record(dead)
        finally:
            dead.release()
        return True


def is_end(message: FromHolder | SessionSummary) -> bool:
    """Tell whether nothing comes after ``message``: the program has ended, or could not start."""
    if isinstance(message, Started):
        return message.failure is not None
    return isinstance(message, InteractiveCmdDone)


def _recorded_end(directory: SessionDirectory) -> float | None:
    """Return the recorded end of the lifetime, else compute it from the program's start."""
    record = directory.read_record()
    if record is not None and record.boot_id == boot_id() and record.ends_at is not None:
        return record.ends_at
    start = directory.read_start()
    seconds = as_start(start).lifetime_seconds if start is not None else 0.0
    if seconds <= 0:
        return None
    pid = directory.read_pid()
    program = read_process(pid) if pid is not None else None
    return (program.started / _TICKS if program is not None else lifetime_clock()) + seconds
