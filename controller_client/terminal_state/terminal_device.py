"""One terminal, opened for the moment of a look: its flags, whether input is unread, whether somebody sleeps in a read.

A slave kept open would suppress end-of-file and EIO on the master for ever, so none outlives the look.
"""

import os
import select
import stat
import sys
import termios
from fcntl import ioctl
from typing import Final, NamedTuple

from controller_client.terminal_state.proc_file import status_of

IS_LINUX: Final = sys.platform == "linux"
TIOCGPTPEER: Final = 0x5441
SLAVE_FLAGS: Final = os.O_RDWR | os.O_NOCTTY | os.O_NONBLOCK | os.O_CLOEXEC
TERMIOS_BYTES: Final = 60
PTS_MAJOR: Final = 136
CONTROLLING_TERMINAL: Final = os.makedev(5, 0)
PTY_MULTIPLEXER: Final = os.makedev(5, 2)

Identity = tuple[int, int]
"""File system and device number: every container has its own ``/dev/pts/0``."""


class Flags(NamedTuple):
    """The terminal's modes that say how input is taken."""

    is_echoing: bool
    is_canonical: bool
    is_polling: bool

    @property
    def is_secret(self) -> bool:
        """Lines are taken without being shown: a password prompt's modes."""
        return self.is_canonical and not self.is_echoing


def read_flags(fd: int) -> Flags:
    """Modes of a terminal, through its slave or its master; OSError when it is gone."""
    try:
        attributes = termios.tcgetattr(fd)
    except termios.error as error:
        raise OSError(*error.args) from error
    local, control = attributes[3], attributes[6]
    is_canonical = bool(local & termios.ICANON)
    return Flags(bool(local & termios.ECHO), is_canonical, not is_canonical and control[termios.VMIN] in (0, b"\0"))


def open_slave(master_fd: int) -> int:
    """The slave of a master, to be closed again at once: needs no path and no permission, and is right in any mount namespace."""
    return ioctl(master_fd, TIOCGPTPEER, SLAVE_FLAGS)


def identity_of(status: os.stat_result) -> Identity:
    """What tells this terminal from every other."""
    return status.st_dev, status.st_rdev


def has_unread_input(slave_fd: int) -> bool:
    """Whether what was typed is still unread. Unlike FIONREAD, poll first pushes what is under way through the line discipline."""
    poller = select.poll()
    poller.register(slave_fd, select.POLLIN)
    return any(events & select.POLLIN for _, events in poller.poll(0))


def is_read_pending(slave_fd: int) -> bool:
    """Whether some task, of any user, holds the terminal's read lock: it sleeps in a read, or is just copying what it read.

    Only to be asked after ``has_unread_input`` said no: then this can never take the lock from a reader that has data.
    """
    try:
        os.read(slave_fd, 0)
    except BlockingIOError:
        return True
    except OSError:
        pass
    return False


def wake_sleepers(fd: int) -> None:
    """Write the modes back unchanged: everybody who sleeps on this terminal re-checks and sleeps again, which no program can see."""
    modes = bytearray(TERMIOS_BYTES)
    ioctl(fd, termios.TCGETS, modes, True)
    ioctl(fd, termios.TCSETS, bytes(modes))


def is_this_terminal(status: os.stat_result, identity: Identity, *, is_own_session: bool) -> bool:
    """Whether a descriptor is the terminal, also by the name ``/dev/tty``."""
    if not stat.S_ISCHR(status.st_mode):
        return False
    return identity_of(status) == identity or (is_own_session and status.st_rdev == CONTROLLING_TERMINAL)


def open_inner(pids: list[int], device: int) -> int | None:
    """The terminal of these processes, through a descriptor of one of them, or None when it is out of reach.

    Their own descriptor is right in any mount namespace. Failing that, write-only by name, which members of group ``tty`` may:
    enough for the modes, for unread input and for waking sleepers.
    """
    for pid in pids:
        for fd in (0, 1, 2):
            opened = _open_if(f"/proc/{pid}/fd/{fd}", device, SLAVE_FLAGS)
            if opened is not None:
                return opened
    index = (os.major(device) - PTS_MAJOR) * 256 + os.minor(device)
    return _open_if(f"/dev/pts/{index}", device, os.O_WRONLY | os.O_NOCTTY | os.O_NONBLOCK | os.O_CLOEXEC)


def _open_if(path: str, device: int, flags: int) -> int | None:
    try:
        if status_of(path).st_rdev != device:
            return None
        fd = os.open(path, flags)
    except OSError:
        return None
    if os.fstat(fd).st_rdev == device:
        return fd
    os.close(fd)
    return None
