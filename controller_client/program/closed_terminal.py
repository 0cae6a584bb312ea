"""A terminal that programs of its user cannot open by its name.

A terminal belongs to its user, and any program of that user may open ``/dev/pts/<n>`` and read what
is typed there, before the program that asks does. The kernel does not show an ordinary user who has
a terminal open: a process can hide that. So for a set-uid program of root the rights are taken off
the name before anybody can open it. Whoever gives them back is noticed, for ever. Who has the
terminal already (the program, and what it starts) needs no name.
"""

import os
import pty
import struct
from fcntl import ioctl
from pathlib import Path
from typing import Final

from controller_client.program.started_program import FileWatch

_TIOCGPTN: Final = 0x80045430
_TIOCSPTLCK: Final = 0x40045431
_TIOCGPTPEER: Final = 0x5441
_IN_ATTRIB: Final = 0x4
_RIGHTS: Final = 0o777
_NUMBER: Final = struct.Struct("i")
_usual_fork: Final = pty.fork


class ClosedTerminal:
    """The terminal of one program, and the proof that its name has been closed ever since."""

    def __init__(self) -> None:
        self._watch: FileWatch | None = None

    def fork(self) -> tuple[int, int]:
        """Fork a process that leads a session on a new terminal, as ``pty.fork`` does.

        Where the kernel does not let this user close the name, the terminal is a usual one.
        """
        try:
            master = os.open("/dev/ptmx", os.O_RDWR | os.O_NOCTTY | os.O_CLOEXEC)
        except OSError:
            return _usual_fork()
        try:
            slave = self._open_closed(master)
        except OSError:
            os.close(master)
            return _usual_fork()
        try:
            pid = os.fork()
        except OSError:
            os.close(master)
            os.close(slave)
            raise
        if pid == 0:
            os.close(master)
            os.login_tty(slave)
        else:
            os.close(slave)
        return pid, master

    def is_closed(self) -> bool:
        """Return whether nobody can have opened the terminal by its name; once False, it stays."""
        if self._watch is not None and self._watch.has_told():
            self.close()
        return self._watch is not None

    def close(self) -> None:
        """End the proof. The terminal itself belongs to whoever forked."""
        if self._watch is not None:
            self._watch.close()
            self._watch = None

    def _open_closed(self, master: int) -> int:
        """Open the terminal after its name was closed. Raises OSError if it cannot be.

        A new terminal is locked: the kernel lets nobody in until we take the lock off.
        """
        (number,) = _NUMBER.unpack(ioctl(master, _TIOCGPTN, _NUMBER.pack(0)))
        name = Path(f"/dev/pts/{number}")
        before = name.stat()
        watch = self._watch = FileWatch.begin(str(name), _IN_ATTRIB)
        if watch is None:
            raise OSError(f"{name} cannot be watched")
        name.chmod(0)
        # This event is our own. If somebody else has changed the mode as well, it is not 0 now, or
        # the next event tells.
        watch.has_told()
        if name.stat().st_mode & _RIGHTS:
            self.close()
        ioctl(master, _TIOCSPTLCK, _NUMBER.pack(0))
        slave = ioctl(master, _TIOCGPTPEER, os.O_RDWR | os.O_NOCTTY)
        status = os.fstat(slave)
        if (status.st_dev, status.st_ino) != (before.st_dev, before.st_ino):
            # The name is that of a terminal in another file system.
            self.close()
            name.chmod(before.st_mode & _RIGHTS)
        return slave
