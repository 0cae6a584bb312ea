"""Readers outside the session's tree: a pinentry below gpg-agent, a tmux or screen server. Slow (a few ms), so asked for rarely."""

from controller_client.terminal_state.proc_file import link_of, numbers_in, status_of
from controller_client.terminal_state.process_table import all_pids
from controller_client.terminal_state.terminal_device import Identity, identity_of


def holders_of(identity: Identity, skip: set[int]) -> list[int]:
    """Pids of processes we may inspect that have this terminal open, but those in ``skip``."""
    return [pid for pid in all_pids() if pid not in skip and _holds(pid, identity)]


def _holds(pid: int, identity: Identity) -> bool:
    base = f"/proc/{pid}/fd/"
    try:
        return any(_is_terminal(f"{base}{fd}", identity) for fd in numbers_in(base))
    except OSError:
        return False


def _is_terminal(path: str, identity: Identity) -> bool:
    try:
        return link_of(path).startswith("/dev/pts/") and identity_of(status_of(path)) == identity
    except OSError:
        return False
