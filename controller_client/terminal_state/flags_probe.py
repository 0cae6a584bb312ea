"""The looks at a terminal where no process can be inspected: macOS and other systems without /proc.

The flags of the terminal are all that its master tells there. Which process waits is not known, so
the text decides, and a claim says ``heuristic``.
"""

import sys

from controller_client.terminal_state.kernel.probe import TerminalProbe
from controller_client.terminal_state.kernel.snapshot import Options, Snapshot
from controller_client.terminal_state.kernel.terminal_device import read_flags


class FlagsProbe(TerminalProbe):
    """A probe that asks for nothing but the flags: its tree of processes stays empty."""

    def look(self, options: Options, *, is_hasty: bool = False) -> Snapshot:
        """Take a snapshot; OSError when the terminal is gone."""
        del options, is_hasty  # Nobody is inspected or woken, and unread input is not seen.
        return Snapshot(flags=read_flags(self._master), is_unreachable=True)


def probe_of(master_fd: int, leader_pid: int) -> TerminalProbe:
    """Return the probe for this system."""
    kind = TerminalProbe if sys.platform.startswith("linux") else FlagsProbe
    return kind(master_fd, leader_pid)
