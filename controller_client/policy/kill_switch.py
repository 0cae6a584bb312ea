"""The kill switch of this host: while it is on, nothing is started and nothing is typed.

It is on while there is a file ``stop`` in one of its places, whatever a server says. Where no
program of a session can write, the file alone decides. Elsewhere any program could remove the file,
so a stop that was seen once is kept: in memory, and across restarts in the file ``stopped`` of the
state directory. To end such a stop, an operator stops the daemon, removes both files, and starts
the daemon. A running daemon writes ``stopped`` again if it is removed.
"""

import asyncio
import ctypes
import logging
import os
import stat
import struct
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final

from controller_client.policy.file import KEPT_STOP_NAME
from controller_client.system.absence import is_there
from controller_client.system.files.open_place import is_open_to_all
from controller_client.system.users.two_users import ProgramUser, may_write

logger = logging.getLogger(__name__)

_IN_CLOEXEC_NONBLOCK: Final = 0o2004000
# Changed attributes; a file that was moved here, created or removed.
_IN_WATCHED: Final = 0x00000004 | 0x00000080 | 0x00000100 | 0x00000200
_EVENT: Final = struct.Struct("iIII")


class KillSwitch:
    """The state of the kill switch, by the files ``stops`` and the kept stop ``kept``.

    ``is_on`` looks at the files. ``watch`` also sees a file that is removed before the next look.
    """

    def __init__(self, stops: Sequence[Path] = (), kept: Path | None = None) -> None:
        self._stops = tuple(stops)
        self._kept = kept
        self._is_kept = kept is not None and _may_be_there(kept)
        if self._is_kept:
            logger.warning(
                "this host stays stopped: to go on, stop the daemon, remove %s, and start it", kept
            )

    @property
    def is_on(self) -> bool:
        """Nothing may be started or typed, or a place of the switch cannot be looked at."""
        for stop in self._stops:
            try:
                is_stopped = is_there(stop)
            except OSError:
                return True
            if is_stopped:
                self._seen(stop)
                return True
        return self._is_kept

    def watch(self) -> Callable[[], None]:
        """Watch the places of the switch, on Linux, in the running event loop's thread.

        Returns a function that ends the watch.
        """
        loop = asyncio.get_running_loop()
        watched = _Watch(
            {path.parent for path in (*self._stops, *self._kept_path()) if is_writable(path)}
        )
        if watched.descriptor < 0:
            return lambda: None

        def on_change() -> None:
            for path in watched.changed():
                if path in self._stops:
                    self._seen(path)
                elif path == self._kept and self._is_kept:
                    self._keep()

        def close() -> None:
            loop.remove_reader(watched.descriptor)
            os.close(watched.descriptor)

        loop.add_reader(watched.descriptor, on_change)
        return close

    def _seen(self, stop: Path) -> None:
        if self._is_kept or not is_writable(stop):
            return
        logger.warning(
            "this host is stopped by %s and stays so: to go on, stop the daemon, remove that "
            "file and %s, and start it",
            stop,
            self._kept,
        )
        self._is_kept = True
        self._keep()

    def _keep(self) -> None:
        for path in self._kept_path():
            # What else may be there, a link or a FIFO, is kept as a stop, too.
            with suppress(OSError):
                os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))

    def _kept_path(self) -> tuple[Path, ...]:
        return () if self._kept is None else (self._kept,)


def _may_be_there(path: Path) -> bool:
    try:
        return is_there(path)
    except OSError:
        return True


def kept_stop(state_dir: Path) -> Path:
    """Return the path at which a stop is kept that programs could have removed."""
    return state_dir / KEPT_STOP_NAME


def is_writable(path: Path) -> bool:
    """Tell whether a program of this user could create, replace or remove ``path``.

    It could if it can write to the directory of ``path`` or to a directory above.
    """
    user = os.geteuid()
    for directory in path.absolute().parents:
        try:
            status = directory.stat()
        except OSError:
            continue
        if (
            user in (0, status.st_uid)
            or is_open_to_all(status)
            or (os.access(directory, os.W_OK) and not status.st_mode & stat.S_ISVTX)
        ):
            return True
    return False


def warn_of_places(
    policies: Sequence[Path], stops: Sequence[Path], run_as: str | None = None
) -> None:
    """Warn of policy files and kill switches that programs of sessions could change."""
    user = None if run_as is None else ProgramUser.named(run_as)

    def can_change(path: Path) -> bool:
        return is_writable(path) if user is None else _can_reach(user, path)

    for path in policies:
        if can_change(path):
            logger.warning(
                "programs of sessions can replace the policy file %s: keep it in a directory "
                "of root's",
                path,
            )
    if stops and all(can_change(stop) or not stop.parent.is_dir() for stop in stops):
        logger.warning(
            "programs of sessions can reach every place of the kill switch: make %s, owned by root",
            stops[0].parent,
        )


def _can_reach(user: ProgramUser, path: Path) -> bool:
    for directory in path.absolute().parents:
        with suppress(OSError):
            if may_write(user, directory):
                return True
    return False


class _Watch:
    """The kernel's notices of changes in some directories (inotify).

    ``descriptor`` is negative where the kernel has none.
    """

    def __init__(self, directories: set[Path]) -> None:
        self.descriptor = -1
        self._directories: dict[int, Path] = {}
        if not sys.platform.startswith("linux"):
            return
        libc = ctypes.CDLL(None, use_errno=True)
        self.descriptor = libc.inotify_init1(_IN_CLOEXEC_NONBLOCK)
        for directory in directories if self.descriptor >= 0 else ():
            watch = libc.inotify_add_watch(self.descriptor, os.fsencode(directory), _IN_WATCHED)
            if watch >= 0:
                self._directories[watch] = directory

    def changed(self) -> list[Path]:
        """Return the paths that changed since the last call."""
        found: list[Path] = []
        with suppress(BlockingIOError):
            data, offset = os.read(self.descriptor, 65536), 0
            while offset < len(data):
                watch, _, _, size = _EVENT.unpack_from(data, offset)
                name = data[offset + _EVENT.size :][:size].rstrip(b"\0")
                offset += _EVENT.size + size
                if watch in self._directories:
                    found.append(self._directories[watch] / os.fsdecode(name))
        return found
