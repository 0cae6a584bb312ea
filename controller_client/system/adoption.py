"""The children of this process: holders, and what holders that died left behind.

The fork server and the daemon are child subreapers, so the processes of a session whose holder was
killed come to one of them, whatever they did to hide: a new session, a second fork, an empty
environment. Which session they are of is known because the kernel hands them over in the moment of
the holder's death. What a holder that ended in good order leaves was left running on purpose, and
is let alone.
"""

import os
from collections.abc import Callable
from contextlib import suppress
from typing import Final, NamedTuple

from controller_client.system.process_tree import (
    DEAD_STATES,
    ProcessInfo,
    own_children,
    read_process,
    session_cookie_of,
)

MAX_REMEMBERED: Final = 4096
LATER: Final = "later"
"""The answer of a fork server in the place of ``is_all`` while that is not settled."""
_MOST_LOOKS: Final = 3
"""Programs that fork for ever die for ever: what is not settled then is so with the next look."""
_NOBODY: Final = frozenset[str]()


class Left(NamedTuple):
    """Processes that a dead holder left, without the processes that descend from them.

    ``is_all``: the session has no others. ``is_settled`` is False while one of them has just ended,
    whose children are known in a moment: nobody can say yet that there are none.
    """

    processes: list[ProcessInfo]
    is_all: bool
    is_settled: bool = True


class Foster:
    """Keeps account of the children of this process, and reaps the dead ones.

    Single-threaded; never blocks. A look that fails loses nothing: dead children stay until they
    are reaped, so the next look sees them.

    ``holder_of`` names the session of a child that is a holder and that another process forked.
    Children for which ``is_foreign`` is true are somebody else's to wait for.
    """

    def __init__(
        self,
        holder_of: Callable[[int], str | None] = lambda _: None,
        is_foreign: Callable[[int], bool] = lambda _: False,
    ) -> None:
        self._holder_of = holder_of
        self._is_foreign = is_foreign
        self._holders: dict[int, str] = {}
        self._orphans: dict[int, frozenset[str]] = {}
        self._seen_dying: dict[str, None] = {}
        # Dead children that are not reaped yet: the list that is read next has all they left.
        self._dying: set[int] = set()
        self._unexplained: set[int] = set()

    def raised(self, pid: int, session_id: str) -> None:
        """Note that the child is the holder of the session; ``""``: it has no session yet."""
        self._holders[pid] = session_id

    def has_raised(self, pid: int) -> bool:
        """Return whether the holder was noted, and was not seen to end."""
        return pid in self._holders

    def look(self) -> list[str]:
        """Note new and dead children; return the sessions whose holder was killed.

        Raises OSError.
        """
        lost = self._look_once()
        for _ in range(_MOST_LOOKS - 1):
            if self._dying or self._unexplained:
                lost |= self._look_once()
        return sorted(lost)

    def _look_once(self) -> set[str]:
        # States are read after the list. So when a child is on the list because its holder died,
        # that holder is seen as dead. A process that died after the list was read left others that
        # are not on it. So the dead are reaped once a list was read after they were seen dead.
        children = [
            child
            for pid in own_children()
            if not self._is_foreign(pid) and (child := read_process(pid)) is not None
        ]
        for child in children:
            if (
                not self._is_known(child.pid)
                and (session_id := self._holder_of(child.pid)) is not None
            ):
                self._holders[child.pid] = session_id
        dead = {child.pid for child in children if child.state in DEAD_STATES}
        parents = {pid: self._sessions_of_dead(pid) for pid in dead if self._may_leave_any(pid)}
        killed = {
            session_id
            for pid, sessions in parents.items()
            if pid in self._holders and pid not in self._dying
            for session_id in sessions
        }
        unsure = self._adopt(children, list(parents.values()))
        for pid in dead & self._dying:
            with suppress(ChildProcessError):
                os.waitpid(pid, os.WNOHANG)
            self._holders.pop(pid, None)
            self._orphans.pop(pid, None)
        self._dying = dead - self._dying
        self._seen_dying.update(dict.fromkeys(killed))
        for session_id in unsure:
            self._seen_dying.pop(session_id, None)
        while len(self._seen_dying) > MAX_REMEMBERED:
            del self._seen_dying[next(iter(self._seen_dying))]
        return killed

    def left_by(self, session_id: str) -> Left:
        """Return the processes of the session that came to this process. Raises OSError.

        They are all that the session has if this process saw its holder die.
        """
        self.look()
        pids = {pid for pid, sessions in self._orphans.items() if session_id in sessions}
        holders = {pid for pid, held in self._holders.items() if held == session_id}
        is_settled = not (pids | holders) & self._dying
        return Left(
            [process for pid in pids - self._dying if (process := read_process(pid)) is not None],
            is_all=session_id in self._seen_dying and is_settled,
            is_settled=is_settled,
        )

    def forget(self) -> None:
        """Forget every child; for a fork of this process, which has none of them."""
        self._holders.clear()
        self._orphans.clear()
        self._dying.clear()
        self._unexplained.clear()

    def _is_known(self, pid: int) -> bool:
        return pid in self._holders or pid in self._orphans

    def _sessions_of_dead(self, pid: int) -> frozenset[str]:
        """Return the sessions whose processes a dead child may have left.

        None for a holder that ended in good order.
        """
        if pid in self._orphans:
            return self._orphans[pid]
        return _NOBODY if _ended_in_order(pid) else frozenset({self._holders[pid]})

    def _may_leave_any(self, pid: int) -> bool:
        """Return whether the child had a session, or is what a killed holder left.

        Of other orphans it is not known: a program can fork them away from its living holder.
        """
        return bool(self._orphans.get(pid) or self._holders.get(pid))

    def _adopt(self, children: list[ProcessInfo], parents: list[frozenset[str]]) -> frozenset[str]:
        """Note whose the new children are; return the sessions that may have more than is known.

        A child of an orphan can end before the orphan does, and its children come here then. So
        the living orphans are parents as well.
        """
        sessions = _NOBODY.union(*parents, *self._orphans.values())
        new = [child for child in children if not self._is_known(child.pid)]
        owners = {
            child.pid: _owners(child, sessions, may_be_nobodys=_NOBODY in parents) for child in new
        }
        # A holder that is being killed gives its children away a moment before it is seen as dead.
        # So what has no parent is looked at once more before it is nobody's.
        is_settled = {pid: bool(whose) or pid in self._unexplained for pid, whose in owners.items()}
        self._unexplained = {pid for pid, is_so in is_settled.items() if not is_so}
        self._orphans.update(
            {pid: whose or _NOBODY for pid, whose in owners.items() if is_settled[pid]}
        )
        return sessions if None in owners.values() else _NOBODY


def _owners(
    child: ProcessInfo, sessions: frozenset[str], *, may_be_nobodys: bool
) -> frozenset[str] | None:
    """Return the sessions that an orphan may belong to, or None if nobody knows.

    If several parents died together, the cookie of the orphan decides. Without a cookie the orphan
    may belong to any of them. It is nobody's if a session that ended in good order may have left
    it: whoever ends a session's processes must not end those.
    """
    if not sessions or (len(sessions) == 1 and not may_be_nobodys):
        return sessions
    own = session_cookie_of(child.pid)
    if own in sessions:
        return sessions & {own}
    if not may_be_nobodys:
        return sessions
    return None if own is None else _NOBODY


def _ended_in_order(pid: int) -> bool:
    with suppress(ChildProcessError):
        status = os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT)
        return status is not None and (status.si_code, status.si_status) == (os.CLD_EXITED, 0)
    return False
