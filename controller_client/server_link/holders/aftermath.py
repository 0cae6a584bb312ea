"""After the death of a holder: its session's processes are ended, and the loss is put on record.

The processes are found in four ways, because a program may hide from each of them: by the mark in
their environment, by the list that the holder wrote last, by the session's control group, and by
adoption: the kernel gives the children of a dead holder to the fork server or to the daemon.
"""

import asyncio
import logging
from collections.abc import Callable, Coroutine
from concurrent.futures import TimeoutError as AnswerTimeout
from dataclasses import dataclass
from typing import NamedTuple

import msgspec

from controller_client.protocol.messages import InteractiveCmdDone
from controller_client.protocol.values import NOTE_LEFT_RUNNING, NOTE_LEFT_UNKNOWN
from controller_client.server_link.holders.dead_holder import DeadHolder
from controller_client.server_link.holders.leftovers import Leftovers
from controller_client.server_link.holders.outage import Outage
from controller_client.session_files.directory import SessionDirectory
from controller_client.session_files.lock_owner import recorded_processes
from controller_client.system.adoption import Left
from controller_client.system.control_group import SessionGroup
from controller_client.system.process_tree import ProcessInfo, read_process
from controller_client.system.termination import MAX_SURVIVORS

logger = logging.getLogger(__name__)

# How long kill_leftovers, in its thread, waits for the names of adopted processes: longer than the
# fork server has for its answer.
ANSWER_SECONDS = 15.0
RETRY_SECONDS = 1.0
# A program that forks and ends for ever is seen in one of so many looks.
_MOST_LOOKS = 20
_LOOK_AGAIN_SECONDS = 0.01
# All sessions share it: a trouble of the host is logged once, not once for each session.
_OUTAGE = Outage(logger)


class Ended(NamedTuple):
    """The outcome of ending a session's processes.

    ``survivors``, as ``name[pid]``, could not be ended. ``is_all``: no other process can be left.
    """

    survivors: list[str]
    is_all: bool


@dataclass(frozen=True)
class Aftermath:
    """The cleaning up after one session's holder.

    ``adopted_of`` returns the processes of a session that came to the fork server or the daemon.
    ``leftovers`` finds and ends processes of the session.
    """

    directory: SessionDirectory
    group: SessionGroup | None
    adopted_of: Callable[[str], Coroutine[object, object, Left]]
    leftovers: Leftovers

    async def put_on_record(self, dead: DeadHolder) -> None:
        """Set ``dead.done``: as the holder recorded the end or, if it did not, as a loss.

        A lost session's processes are ended first. What the host cannot do now is tried until it
        can: without a free descriptor, say, nobody knows which processes are left.
        """
        if dead.done is not None:
            await self._hold_against_processes(dead, dead.done)
        if dead.done is not None:
            return
        logger.error("session %s is lost: its holder died", dead.session_id)
        ended = await self.end_processes()
        if ended.survivors:
            survivors = ", ".join(ended.survivors)
            logger.error("of session %s there is left: %s", dead.session_id, survivors)
        await self.record_loss(dead, ended)

    async def _hold_against_processes(self, dead: DeadHolder, done: InteractiveCmdDone) -> None:
        """Take the record back if it says that nothing is left, and something runs.

        A program of the daemon's user can write the record and then kill its holder. A holder
        writes it when nothing is left, or names what is.
        """
        named = set(done.survivors)
        unnamed = [left.label for left in await self._left() if left.label not in named]
        if not unnamed:
            return
        said = "the record of the end of session %s does not name what runs: %s"
        logger.error(said, dead.session_id, ", ".join(unnamed[:MAX_SURVIVORS]))
        if {NOTE_LEFT_RUNNING, NOTE_LEFT_UNKNOWN}.isdisjoint(done.notes):
            dead.done = None
        else:
            survivors = [*done.survivors, *unnamed][:MAX_SURVIVORS]
            dead.done = msgspec.structs.replace(done, survivors=survivors)

    async def _left(self) -> list[ProcessInfo]:
        """Return the session's processes that run, however often they have to be looked for."""
        unsettled = 0
        while True:
            try:
                adopted = await self.adopted_of(self.directory.session_id)
                known = [
                    *recorded_processes(self.directory),
                    *adopted.processes,
                    *_grouped(self.group),
                ]
                found = await self.leftovers.members(known)
                if found or adopted.is_settled or unsettled == _MOST_LOOKS:
                    return found
                unsettled += 1
                await asyncio.sleep(_LOOK_AGAIN_SECONDS)
            except OSError as error:
                _OUTAGE.report("what dead holders left cannot be looked for: %s", error)
                await asyncio.sleep(RETRY_SECONDS)

    async def end_processes(self) -> Ended:
        """Kill the session's processes, however often that has to be tried."""
        while True:
            try:
                return await self._end_processes_now()
            except OSError as error:
                _OUTAGE.report("what lost sessions left cannot be looked for: %s", error)
            await asyncio.sleep(RETRY_SECONDS)

    async def record_loss(self, dead: DeadHolder, ended: Ended) -> None:
        """Record the loss, however often that has to be tried.

        A record that cannot be written is enough in memory: the server is told all the same.
        """
        while dead.done is None:
            try:
                dead.record_loss(ended.survivors, is_all=ended.is_all)
            except OSError as error:
                _OUTAGE.report("the loss of sessions cannot be recorded: %s", error)
                if dead.done is None:
                    await asyncio.sleep(RETRY_SECONDS)

    async def _end_processes_now(self) -> Ended:
        """End the session's processes. Raises OSError if they cannot be looked at now."""
        session_id, group = self.directory.session_id, self.group
        loop = asyncio.get_running_loop()
        recorded = recorded_processes(self.directory)
        # Only root can move a process out of a control group: an empty one means that none is left.
        is_grouped = group is not None and group.exists()
        if group is not None:
            group.kill()
        last = Left([], is_all=False)

        def find_processes() -> Left:
            # Runs in the thread, before each round of signals. The adopted are asked for each time:
            # a child that was forked while its parent was killed has been adopted since.
            nonlocal last
            answer = asyncio.run_coroutine_threadsafe(self.adopted_of(session_id), loop)
            try:
                now = answer.result(ANSWER_SECONDS)
            except AnswerTimeout:
                raise OSError("the adopted processes are not known in time") from None
            last = now._replace(processes=[*recorded, *now.processes, *_grouped(group)])
            return last

        survivors = await self.leftovers.end(find_processes)
        if group is not None:
            group.remove()
        return Ended(survivors, is_grouped or last.is_all)


def _grouped(group: SessionGroup | None) -> list[ProcessInfo]:
    if group is None:
        return []
    return [process for pid in group.pids() if (process := read_process(pid)) is not None]
