"""Readers that no look at the tree shows. They are outside of it, or wait for a signal.

Outside are a pinentry below gpg-agent, and a tmux or screen server. Each search takes a few
milliseconds, so it is made rarely.
"""

import os
import re
from fcntl import F_GETOWN, fcntl
from typing import Final

from controller_client.system.absence import raise_shortage
from controller_client.terminal_state.kernel.proc_file import (
    link_of,
    numbers_in,
    read_once,
    status_of,
)
from controller_client.terminal_state.kernel.process_table import all_pids, group_of
from controller_client.terminal_state.kernel.relayed_terminal import borrow_by_fork
from controller_client.terminal_state.kernel.terminal_device import (
    Identity,
    identity_of,
    is_this_terminal,
)

_FLAGS: Final = re.compile(rb"flags:\s*(\d+)")


def holders_of(identity: Identity, skip: set[int]) -> list[int]:
    """Return the pids of processes outside ``skip`` that have this terminal open.

    Processes that may not be inspected are left out. Raises OSError if they cannot be found now.
    """
    return [pid for pid in all_pids() if pid not in skip and _holds(pid, identity)]


def signalled_of(identity: Identity, pids: list[int]) -> list[int]:
    """Return those of ``pids`` to which this terminal sends a signal when it has input.

    Raises OSError if they cannot be found now.
    """
    return [pid for pid in pids if _is_signalled(pid, identity)]


def _is_signalled(pid: int, identity: Identity) -> bool:
    base = f"/proc/{pid}/"
    try:
        return any(
            is_this_terminal(status_of(f"{base}fd/{fd}"), identity, is_own_session=True)
            and _is_asynchronous(read_once(f"{base}fdinfo/{fd}"))
            and _owner_of(pid, fd) in {pid, -group_of(pid)}
            for fd in numbers_in(base + "fd")
        )
    except OSError as error:
        raise_shortage(error)
        return False


def _is_asynchronous(info: bytes) -> bool:
    flags = _FLAGS.search(info)
    return flags is not None and bool(int(flags[1], 8) & os.O_ASYNC)


def _owner_of(pid: int, fd: int) -> int:
    """Return the process, or minus the group, that gets the signal: the flag may be a leftover."""
    borrowed = borrow_by_fork(pid, fd)
    if borrowed is None:
        return 0
    try:
        return fcntl(borrowed, F_GETOWN)
    finally:
        os.close(borrowed)


def pipe_holders(fd: int, session: int) -> set[int]:
    """Return the pids of other processes that have an end of our pipe ``fd`` open.

    A process of terminal session ``session`` that may not be inspected counts as one of them.
    Raises OSError if they cannot be found now.
    """
    pipe = link_of(f"/proc/self/fd/{fd}")
    return {pid for pid in all_pids() if pid != os.getpid() and _has_pipe(pid, pipe, session)}


def _has_pipe(pid: int, pipe: str, session: int) -> bool:
    base = f"/proc/{pid}/fd/"
    try:
        return any(link_of(f"{base}{fd}") == pipe for fd in numbers_in(base))
    except PermissionError:
        return _session_of(pid) == session
    except OSError as error:
        raise_shortage(error)
        return False


def _session_of(pid: int) -> int:
    try:
        return os.getsid(pid)
    except OSError:
        return 0


def _holds(pid: int, identity: Identity) -> bool:
    base = f"/proc/{pid}/fd/"
    try:
        return any(_is_terminal(f"{base}{fd}", identity) for fd in numbers_in(base))
    except OSError as error:
        raise_shortage(error)
        return False


def _is_terminal(path: str, identity: Identity) -> bool:
    try:
        return link_of(path).startswith("/dev/pts/") and identity_of(status_of(path)) == identity
    except OSError as error:
        raise_shortage(error)
        return False
