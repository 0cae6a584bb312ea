"""The reader that would get input at this moment, and whether the input would be shown.

A stored secret is typed only after this check, which never guesses. A verdict of the watcher may be
old and may rest on text. This is a look of its own, and it counts only tasks that slept through all
of it, by the word of the kernel.
"""

import os
from dataclasses import dataclass
from typing import Final

from controller_client.terminal_state.kernel.outsiders import holders_of
from controller_client.terminal_state.kernel.probe import TerminalProbe
from controller_client.terminal_state.kernel.proc_file import VANISHED
from controller_client.terminal_state.kernel.snapshot import Options
from controller_client.terminal_state.kernel.terminal_device import read_flags
from controller_client.terminal_state.kernel.waiter import How, may_take_input

_TRIES: Final = 3
"""Several looks: a reader that was woken in the middle of one is asleep again in the next."""


@dataclass(frozen=True, slots=True)
class Reader:
    """The processes that would get input now, and the way their terminal shows it.

    ``pids`` are the processes that wait for input in the foreground; 0 stands for a process that
    cannot be named.
    """

    pids: frozenset[int]
    is_hidden: bool
    """The reader takes whole lines, and no terminal on the way to it shows them."""
    is_relayed: bool = False
    """The reader's terminal is an inner one, which may have been without echo from the start."""

    def is_only(self, pid: int) -> bool:
        """Return whether ``pid`` is the only process in the foreground that can get input."""
        return self.pids == {pid}


def find_reader(probe: TerminalProbe, master_fd: int) -> Reader | None:
    """Return the reader now.

    None if no process is proven to wait, or if earlier input is still unread.
    """
    for _ in range(_TRIES):
        try:
            snapshot = probe.look(Options())
            waiters = [waiter for waiter in snapshot.waiters if waiter.how <= How.POLL]
            if snapshot.has_unread or snapshot.flags is None:
                return None
            outer = read_flags(master_fd)
            # This check comes last: it proves that all of the above was true at the same time.
            if waiters and snapshot.still_holds():
                is_hidden = snapshot.flags.is_secret and (
                    not outer.is_echoing if snapshot.inner_device else outer.is_secret
                )
                return Reader(
                    frozenset(waiter.pid for waiter in waiters),
                    is_hidden,
                    bool(snapshot.inner_device),
                )
        except VANISHED:
            continue
    return None


def others_may_read(probe: TerminalProbe, pid: int) -> bool:
    """Return whether a process other than ``pid`` may take input of the same terminal.

    A process of the tree counts unless it is seen asleep in calls that take none. This takes a few
    milliseconds, because it looks at every process of this user. To be called right after
    ``find_reader``. Raises OSError if the answer cannot be found out.
    """
    identity = probe.identity
    if identity is None:
        return True
    processes = probe.table.processes
    if holders_of(identity, {process.pid for process in processes} | {os.getpid()}):
        return True
    return any(may_take_input(process, identity) for process in processes if process.pid != pid)
