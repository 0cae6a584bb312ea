"""Finds and ends the processes of a session from outside of its holder, for the daemon.

The daemon does that itself where programs run as its own user. It may neither look at nor signal
the processes of another user. So a fork of the fork server does it for sessions of that user.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from controller_client.session_files.directory import SessionDirectory
from controller_client.session_files.one_shot import as_start
from controller_client.system.adoption import Left
from controller_client.system.process_tree import ProcessInfo, is_same, session_members
from controller_client.system.termination import MAX_SURVIVORS, Vanished, kill_leftovers

# What is forked while its parent is killed is found in the next round.
_ROUNDS: Final = 20

Deputy = Callable[[str, str, Sequence[ProcessInfo]], Awaitable[list[ProcessInfo]]]
"""Does what a sign stands for (``=`` list, ``!`` kill) with the processes of a session, and those
below the given ones, and returns what is left. Raises OSError."""


@dataclass(frozen=True)
class Leftovers:
    """The processes of one session, as seen from outside.

    ``deputy`` acts as the user ``run_as``; None: programs run as the daemon's user.
    """

    directory: SessionDirectory
    run_as: str | None = None
    deputy: Deputy | None = None

    async def members(self, known: Iterable[ProcessInfo]) -> list[ProcessInfo]:
        """Return the live processes: those that are found, and those that are ``known``.

        Raises OSError.
        """
        session_id = self.directory.session_id
        also = [process for process in known if is_same(process)]
        if (deputy := self._deputy()) is not None:
            return await deputy("=", session_id, also)
        return await asyncio.to_thread(
            session_members,
            session_id,
            roots=(),
            terminal_session=None,
            also=[process.pid for process in also],
        )

    async def end(self, find: Callable[[], Left]) -> list[str]:
        """Kill the processes; return those that cannot be killed, as ``name[pid]``.

        ``find`` names those that are known; it runs in a thread. Raises OSError.
        """
        session_id = self.directory.session_id
        deputy = self._deputy()
        if deputy is None:
            return await asyncio.to_thread(kill_leftovers, session_id, find)
        vanished = Vanished()
        for _ in range(_ROUNDS):
            left = await deputy("!", session_id, (await asyncio.to_thread(find)).processes)
            named, _, is_settled = await asyncio.to_thread(find)
            is_settled = not vanished.see(named) and is_settled
            if left or (is_settled and not await self.members(named)):
                break
        return [process.label for process in left[:MAX_SURVIVORS]]

    def _deputy(self) -> Deputy | None:
        """Return the deputy if the session's program runs as its user. Raises OSError.

        Only START says so, since the user may have been changed while the session lives. What runs
        as a user of an earlier time is named by the daemon, which cannot end it.
        """
        start = self.directory.read_start() if self.run_as is not None else None
        admission = as_start(start).admission if start is not None else None
        is_its_user = admission is not None and admission.run_as == self.run_as
        return self.deputy if is_its_user else None
