"""Proves that a process still runs the file that it was started from.

For a process of the same user the kernel names the file (``/proc/<pid>/exe``). For a set-uid
program (sudo, su, passwd) it does not, so a proof is kept from the start on. The kernel tells a
watcher of a file when a process lets go of an image of the file. That happens before a program that
replaces the image runs its first instruction. So:

* While no image of the file was let go of, the process runs the file.
* Once an image was let go of, another process may have had it. Then the process still runs the file
  if it slept all the time since it was last known to run it.
"""

import ctypes
import os
import stat
import sys
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Self

from controller_client.terminal_state.kernel.task import Task

_IN_NONBLOCK: Final = 0o4000
_IN_CLOEXEC: Final = 0o2000000
_IN_CLOSE: Final = 0x18
_EVENT_BYTES: Final = 64 * 1024
# What runs in these may open its terminal by name, as its user: they are given no secret instead.
_OPENED_BY_NAME: Final = frozenset({"newgrp", "screen"})
_libc = ctypes.CDLL(None, use_errno=True)

FileIdentity = tuple[int, int]
"""Device and inode of a file."""


def identity_of_file(path: str) -> FileIdentity:
    """Return the identity of the file that a path leads to. Raises OSError."""
    status = Path(path).stat()
    return status.st_dev, status.st_ino


class FileWatch:
    """Events of one file, told by the kernel to whoever may read the file."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor

    @classmethod
    def begin(cls, path: str, events: int) -> Self | None:
        """Watch the file; None where the kernel cannot, or does not let this user."""
        if not sys.platform.startswith("linux"):
            return None
        descriptor = _libc.inotify_init1(_IN_NONBLOCK | _IN_CLOEXEC)
        if descriptor < 0:
            return None
        if _libc.inotify_add_watch(descriptor, os.fsencode(path), events) < 0:
            os.close(descriptor)
            return None
        return cls(descriptor)

    def has_told(self) -> bool:
        """Return whether there was an event since the last call.

        That there were more events than the kernel keeps counts as an event, too.
        """
        if self._descriptor < 0:
            return True
        has_any = False
        with suppress(BlockingIOError):
            while os.read(self._descriptor, _EVENT_BYTES):
                has_any = True
        return has_any

    def close(self) -> None:
        """Close the watcher of the kernel. From now on everything may have happened."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1


class ImageWatch:
    """The proof that one process runs the file it was started from.

    Make it before the process executes the file.
    """

    def __init__(self, watch: FileWatch) -> None:
        self._watch = watch
        self._task: Task | None = None
        self._asleep_at = b""
        self._is_lost = False

    @classmethod
    def begin(cls, path: str) -> Self | None:
        """Watch the file; None where the kernel cannot, or does not let this user."""
        watch = FileWatch.begin(path, _IN_CLOSE)
        return None if watch is None else cls(watch)

    def is_unchanged(self, pid: int) -> bool:
        """Return whether the process is proven to run the file; once it is not, it never is."""
        if self._task is None:
            self._task = Task(pid, pid)
        # In this order: an image that was let go of before the counter was read is reported by now.
        counter = self._sleeping_counter(self._task)
        is_told = self._watch.has_told()
        if is_told and not (counter and counter == self._asleep_at):
            self._is_lost = True
        if not self._is_lost:
            self._asleep_at = counter
        return not self._is_lost

    def close(self) -> None:
        """Close the watcher of the kernel. Nothing is proven any more."""
        self._is_lost = True
        if self._task is not None:
            self._task.close()
        self._watch.close()

    @staticmethod
    def _sleeping_counter(task: Task) -> bytes:
        """Return the run counter of a task that slept while the counter was read; else nothing.

        The counter of a task that runs proves nothing.
        """
        before = task.read_counter()
        with suppress(OSError, ValueError, IndexError):
            if task.status().is_asleep and task.read_counter() == before:
                return before
        return b""


@dataclass(frozen=True, slots=True)
class StartedProgram:
    """The file that was executed for a session.

    ``image`` is there for set-uid files of root only, where it can be had. ``closes_terminal``: no
    other program of the user shall be able to open the terminal of the program by its name.
    """

    file: FileIdentity | None
    image: ImageWatch | None = None
    closes_terminal: bool = False

    @classmethod
    def about_to_run(cls, path: str) -> Self:
        """Begin the proof; call this right before ``path`` is executed."""
        try:
            status = Path(path).stat()
        except OSError:
            return cls(None)
        is_root_by_itself = (
            stat.S_ISREG(status.st_mode)
            and status.st_uid == 0
            and bool(status.st_mode & stat.S_ISUID)
        )
        image = ImageWatch.begin(path) if is_root_by_itself and os.geteuid() != 0 else None
        closes = image is not None and Path(path).resolve().name not in _OPENED_BY_NAME
        return cls((status.st_dev, status.st_ino), image, closes)

    def is_run_by(self, pid: int) -> bool | None:
        """Return whether the process, which must be the one that was started, runs the file.

        None if that cannot be known.
        """
        if self.file is None:
            return None
        try:
            return identity_of_file(f"/proc/{pid}/exe") == self.file
        except PermissionError:
            # A process of this user that hides is not what was started; one of root may be.
            is_proven = (
                self.image is not None and effective_user(pid) == 0 and self.image.is_unchanged(pid)
            )
            return True if is_proven else None
        except OSError:
            return None

    def observe(self, pid: int) -> None:
        """Renew the proof while that is possible; call this now and then."""
        if self.image is not None:
            self.image.is_unchanged(pid)

    def close(self) -> None:
        """End the proof: the program has ended, or was never started."""
        if self.image is not None:
            self.image.close()


def status_number(pid: int, name: str, index: int = 0) -> int | None:
    """Return a number of ``/proc/<pid>/status``, which everybody may read; None without one."""
    with suppress(OSError, ValueError, IndexError):
        for line in Path(f"/proc/{pid}/status").read_text(errors="replace").splitlines():
            if line.startswith(f"{name}:"):
                return int(line.split()[1 + index])
    return None


def effective_user(pid: int) -> int | None:
    """Return the user whose rights the process has."""
    return status_number(pid, "Uid", 1)
