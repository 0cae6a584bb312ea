"""One terminal, opened for the moment of a look: its flags, its unread input, its sleeping readers.

A slave that is kept open would suppress end-of-file and EIO on the master for ever. So no slave
stays open after the look.
"""

import os
import select
import stat
import termios
from fcntl import ioctl
from typing import Final, NamedTuple

from controller_client.system.absence import raise_shortage
from controller_client.terminal_state.kernel.proc_file import numbers_in, status_of

TIOCGPTPEER: Final = 0x5441
SLAVE_FLAGS: Final = os.O_RDWR | os.O_NOCTTY | os.O_NONBLOCK | os.O_CLOEXEC
TERMIOS_BYTES: Final = 60
PTS_MAJOR: Final = 136
"""The first half of the device number of each pseudo-terminal, however many there are."""
CONTROLLING_TERMINAL: Final = os.makedev(5, 0)
PTY_MULTIPLEXER: Final = os.makedev(5, 2)

Identity = tuple[int, int]
"""File system and device number: every container has its own ``/dev/pts/0``."""


class Flags(NamedTuple):
    """The terminal's modes that say how input is taken."""

    is_echoing: bool
    is_canonical: bool
    is_polling: bool
    edits_lines: bool = False
    """A line editor reads here: one that echoes by itself, and takes the key that quotes the next.

    Readline, libedit and the editors of shells free this key. Programs that read keys do not.
    """
    takes_every_key: bool = False
    """The key of an interrupt is input as well. Linenoise, its kin and Node set such modes.

    Most programs that read one key leave that one to the kernel.
    """

    @property
    def is_secret(self) -> bool:
        """True if lines are taken without being shown, as at a password prompt."""
        return self.is_canonical and not self.is_echoing


def read_flags(fd: int) -> Flags:
    """Return the modes of a terminal, by its slave or its master; OSError when it is gone."""
    try:
        attributes = termios.tcgetattr(fd)
    except termios.error as error:
        raise OSError(*error.args) from error
    local, control = attributes[3], attributes[6]
    is_canonical, is_echoing = bool(local & termios.ICANON), bool(local & termios.ECHO)
    return Flags(
        is_echoing=is_echoing,
        is_canonical=is_canonical,
        is_polling=not is_canonical and control[termios.VMIN] in (0, b"\0"),
        edits_lines=not (is_canonical or is_echoing) and control[termios.VLNEXT] == b"\0",
        takes_every_key=not local & (termios.ICANON | termios.ECHO | termios.ISIG | termios.IEXTEN),
    )


def open_slave(master_fd: int) -> int:
    """Open the slave of a master; the caller closes it at once.

    This needs no path and no permission, and is right in any mount namespace.
    """
    return ioctl(master_fd, TIOCGPTPEER, SLAVE_FLAGS)


def identity_of(status: os.stat_result) -> Identity:
    """Return the identity of a terminal, which no other terminal has."""
    return status.st_dev, status.st_rdev


def has_unread_input(slave_fd: int) -> bool:
    """Return whether the terminal has input that no program has read.

    Unlike FIONREAD, poll first pushes new input through the line discipline.
    """
    poller = select.poll()
    poller.register(slave_fd, select.POLLIN)
    return any(events & select.POLLIN for _, events in poller.poll(0))


def is_read_pending(slave_fd: int) -> bool | None:
    """Return whether some task, of any user, holds the terminal's read lock; None if unknown.

    Such a task sleeps in a read, or copies its data at this moment. To be called only after
    ``has_unread_input`` returned False: then this never takes the lock from a reader with data.
    """
    try:
        os.read(slave_fd, 0)
    except BlockingIOError:
        return True
    except OSError:
        # The terminal is gone, or was opened for writing alone.
        return None
    return False


def wake_sleepers(fd: int) -> None:
    """Wake every task that sleeps on this terminal, by writing the modes back unchanged.

    Each task checks the terminal and sleeps again, which its program cannot see.
    """
    modes = bytearray(TERMIOS_BYTES)
    ioctl(fd, termios.TCGETS, modes, True)
    ioctl(fd, termios.TCSETS, bytes(modes))


def is_this_terminal(status: os.stat_result, identity: Identity, *, is_own_session: bool) -> bool:
    """Return whether a descriptor is the terminal, also by the name ``/dev/tty``."""
    if not stat.S_ISCHR(status.st_mode):
        return False
    return identity_of(status) == identity or (
        is_own_session and status.st_rdev == CONTROLLING_TERMINAL
    )


def open_inner(pids: list[int], device: int) -> int | None:
    """Open the terminal of these processes; None when it is out of reach.

    A descriptor of one of the processes is right in any mount namespace. If one of them may not be
    asked, the terminal is opened by its name and only for writing, which members of group ``tty``
    may do. That is enough for the modes, for unread input and for waking sleepers. A terminal that
    nobody has open yet must not be opened: to close it again would tell its master of an end.
    """
    for pid in pids:
        for fd in (0, 1, 2):
            opened = _open_if(f"/proc/{pid}/fd/{fd}", device, SLAVE_FLAGS)
            if opened is not None:
                return opened
    try:
        for pid in pids:
            for fd in numbers_in(f"/proc/{pid}/fd"):
                opened = _open_if(f"/proc/{pid}/fd/{fd}", device, SLAVE_FLAGS)
                if opened is not None:
                    return opened
    except PermissionError:
        flags = os.O_WRONLY | os.O_NOCTTY | os.O_NONBLOCK | os.O_CLOEXEC
        return _open_if(f"/dev/pts/{os.minor(device)}", device, flags)
    except OSError as error:
        raise_shortage(error)
    return None


def _open_if(path: str, device: int, flags: int) -> int | None:
    try:
        if status_of(path).st_rdev != device:
            return None
        fd = os.open(path, flags)
    except OSError as error:
        raise_shortage(error)
        return None
    if os.fstat(fd).st_rdev == device:
        return fd
    os.close(fd)
    return None
