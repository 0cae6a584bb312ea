"""A session's holder as the daemon remembers it, whatever becomes of the session's directory.

A program of the daemon's user can move the directory away, put another in its place, or spoil the
lock in it. Then no lock and no socket leads to the holder any more. Its process id and start time
do.
"""

import asyncio
import errno
import signal
import stat
from contextlib import suppress
from logging import getLogger
from typing import Final

from controller_client.protocol.messages import InteractiveCmdDone, RunCommand
from controller_client.protocol.values import NOTE_NOTHING_LEFT
from controller_client.server_link.holders.aftermath import Aftermath
from controller_client.server_link.holders.dead_holder import NOTE_HOLDER_DIED, DeadHolder
from controller_client.server_link.holders.outage import Outage
from controller_client.session_files.lock_owner import living_holder, locker
from controller_client.session_files.one_shot import StartCommand, as_result
from controller_client.system.absence import raise_unknown
from controller_client.system.adoption import Left
from controller_client.system.process_tree import (
    DEAD_STATES,
    ProcessInfo,
    live_processes,
    read_process,
)
from controller_client.system.termination import send_signal

logger = getLogger(__name__)

# A holder that cannot be killed is not one of this user.
_MOST_KILLS: Final = 20
_KILL_AGAIN_SECONDS: Final = 0.1
_OUTAGE = Outage(logger)


class KnownHolder:
    """The holder of one session, and the ending of the session without its directory."""

    def __init__(self, aftermath: Aftermath) -> None:
        self._aftermath = aftermath
        self._directory = aftermath.directory
        self._remembered: ProcessInfo | None = None
        self._is_one_shot = False
        # Who else had the lock when the holder was dead: a program, or whoever only looked.
        self._other: ProcessInfo | None = None
        self._is_spoiled = False

    def began(self, start: StartCommand, pid: int | None) -> None:
        """Remember the holder that the daemon gave ``start`` to."""
        self._is_one_shot = isinstance(start, RunCommand)
        if pid is not None:
            with suppress(OSError):
                self._remembered = read_process(pid)

    def recall(self) -> None:
        """Remember the holder that an earlier daemon started. Raises OSError."""
        if self._remembered is None:
            self._remembered = living_holder(self._directory)
            self._is_one_shot = isinstance(self._directory.read_start(), RunCommand)

    @property
    def pid(self) -> int | None:
        """The process id of the holder, dead or alive; None if it is not known."""
        return self._remembered.pid if self._remembered is not None else None

    def living(self) -> ProcessInfo | None:
        """Return the holder; None if it is dead, or nobody knows it. Raises OSError."""
        known = self._remembered
        if known is None:
            return living_holder(self._directory)
        now = read_process(known.pid)
        is_it = now is not None and now.started == known.started
        return now if is_it and now is not None and now.state not in DEAD_STATES else None

    def claim(self) -> DeadHolder | None:
        """Take the lock; None while the holder lives, or whoever looks has it for a moment.

        Raises FileNotFoundError if the directory is gone, or spoiled and nobody's, OSError.
        """
        try:
            dead = DeadHolder.claim(self._directory)
        except FileNotFoundError:
            raise
        except OSError as error:
            raise_unknown(error)
            dead, self._is_spoiled = None, self.living() is None
        else:
            if dead is not None and self._remembered is not None and self.living() is not None:
                # This is another lock than the holder's.
                dead.release()
                return None
            self._is_spoiled = dead is None and self._is_taken()
        if self._is_spoiled:
            raise FileNotFoundError(errno.ENOENT, "the lock is spoiled", str(self._directory.path))
        return dead

    def _is_taken(self) -> bool:
        """Return whether the holder is dead and, for the second time, one other has its lock."""
        if self._remembered is None or self.living() is not None:
            return False
        before, self._other = self._other, locker(self._directory)
        return self._other is not None and before is not None and before.mark == self._other.mark

    def is_directory_gone(self) -> bool:
        """Return whether the directory is certainly not there, or of no use."""
        if self._is_spoiled:
            return True
        try:
            return not stat.S_ISDIR(self._directory.path.lstat().st_mode)
        except FileNotFoundError:
            return True
        except OSError:
            return False

    def is_alone(self) -> bool:
        """Return whether the holder lives, and nothing below it. Raises OSError."""
        holder = self.living()
        return holder is not None and not _children_of(holder)

    async def kill_below(self, holder: ProcessInfo) -> None:
        """Kill every process below the holder. Raises OSError."""
        await self._aftermath.leftovers.end(lambda: Left(_children_of(holder), is_all=False))

    async def end(self) -> InteractiveCmdDone:
        """End the holder and all of the session, and return the end of a lost session.

        What is left of the directory is removed, or the next survey would find it.
        """
        session_id = self._directory.session_id
        logger.error(
            "session %s is lost: its directory is gone or spoiled before its end", session_id
        )
        for _ in range(_MOST_KILLS):
            try:
                holder = self.living() or await asyncio.to_thread(living_holder, self._directory)
                if holder is None:
                    break
                await self.kill_below(holder)
                send_signal([holder], signal.SIGKILL)
            except OSError as error:
                _OUTAGE.report("holders without a directory cannot be ended: %s", error)
            await asyncio.sleep(_KILL_AGAIN_SECONDS)
        survivors, is_all = await self._aftermath.end_processes()
        notes = [NOTE_HOLDER_DIED, *([NOTE_NOTHING_LEFT] if is_all and not survivors else [])]
        done = InteractiveCmdDone(
            session_id=session_id, end_reason="lost", survivors=survivors, notes=notes
        )
        self._directory.remove()
        return as_result(done) if self._is_one_shot else done


def _children_of(holder: ProcessInfo) -> list[ProcessInfo]:
    return [process for process in live_processes().values() if process.parent_pid == holder.pid]
