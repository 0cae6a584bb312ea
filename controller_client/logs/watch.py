"""One watch of all directories in which a log is waited for: a doorbell, which proves nothing.

However many callers wait, there is one watcher of the kernel (inotify; FSEvents on macOS) and two
threads. The watcher is made anew for a directory that it does not have yet. It exists only while
somebody waits, and IDLE_SECONDS longer. Where the kernel gives none, no bell rings: callers look
again after pauses anyway.
"""

import asyncio
import logging
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from watchfiles._rust_notify import RustNotify

logger = logging.getLogger(__name__)

# A change is told one to two steps after it was made. The watcher looks for changes once a step
# while somebody waits.
STEP_MS: Final = 10
GATHER_MS: Final = 20
IDLE_SECONDS: Final = 5.0
# Pause after the kernel refused a watcher, mostly for its limits.
RETRY_SECONDS: Final = 5.0


class Bell(asyncio.Event):
    """An event that is set when a file changes whose name ``is_meant``; any task may clear it."""

    def __init__(self, is_meant: Callable[[str], object]) -> None:
        super().__init__()
        self.is_meant = is_meant


class DirectoryWatch:
    """The watch of one event loop. ``_run`` and what it calls run in a thread of their own."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._bells: dict[str, set[Bell]] = {}
        self._armed: frozenset[str] = frozenset()
        self._is_stale = threading.Event()
        self._thread: threading.Thread | None = None

    @contextmanager
    def bell(self, directory: str, is_meant: Callable[[str], object]) -> Iterator[Bell]:
        """Give a block a bell for files of ``directory``.

        The bell also rings when the watch of the directory begins: the caller has to look for what
        happened before.
        """
        bell = Bell(is_meant)
        with self._lock:
            self._bells.setdefault(directory, set()).add(bell)
            if self._thread is None:
                loop = asyncio.get_running_loop()
                thread = threading.Thread(target=self._run, args=(loop,), name="directory watch")
                # A thread that cannot be started now is not there: the next bell tries again.
                with suppress(RuntimeError):
                    thread.start()
                    self._thread = thread
            elif directory not in self._armed:
                self._is_stale.set()
        try:
            yield bell
        finally:
            with self._lock:
                # After a close, other callers may wait in the directory already.
                bells = self._bells.get(directory, set())
                bells.discard(bell)
                if not bells:
                    self._bells.pop(directory, None)

    def is_armed(self, directory: str) -> bool:
        """Return whether bells of this directory ring."""
        return directory in self._armed

    def close(self) -> None:
        """Drop all bells; the threads end within a step or two."""
        with self._lock:
            self._bells.clear()
        self._is_stale.set()

    def _run(self, loop: asyncio.AbstractEventLoop) -> None:
        # Imported here, because it takes a while and most daemons never wait for a log.
        from watchfiles._rust_notify import RustNotify

        watcher: RustNotify | None = None
        while directories := self._wanted():
            try:
                # Not recursive; a directory that may not be watched or does not exist is left out.
                fresh = RustNotify(sorted(directories), False, False, 0, False, True)
                # The old watcher is closed only now, so that no change falls between the two.
                new, self._armed = directories - self._armed, directories
                loop.call_soon_threadsafe(self._ring_all, new)
                if watcher is not None:
                    self._tell(loop, watcher.watch(1, 1, 1, None))
                    watcher.close()
                watcher = fresh
                self._tell_all(loop, watcher)
            except (OSError, RuntimeError) as error:
                if loop.is_closed():
                    self.close()
                logger.warning("no changes of files are told: %s", type(error).__name__)
                self._armed = frozenset()
                self._is_stale.wait(RETRY_SECONDS)
        if watcher is not None:
            watcher.close()

    def _wanted(self) -> frozenset[str]:
        """Return the directories in which somebody waits; if there are none, the thread ends."""
        with self._lock:
            self._is_stale.clear()
            directories = frozenset(self._bells)
            if not directories:
                self._thread, self._armed = None, frozenset()
            return directories

    def _tell_all(self, loop: asyncio.AbstractEventLoop, watcher: "RustNotify") -> None:
        """Tell changes until another directory is wanted, or nobody waits.

        Raises RuntimeError once the loop is closed.
        """
        while not self._is_stale.is_set():
            changes = watcher.watch(GATHER_MS, STEP_MS, int(IDLE_SECONDS * 1000), self._is_stale)
            self._tell(loop, changes)
            if changes == "timeout" and (loop.is_closed() or not self._bells):
                return

    def _tell(self, loop: asyncio.AbstractEventLoop, changes: set[tuple[int, str]] | str) -> None:
        if isinstance(changes, set):
            loop.call_soon_threadsafe(self._ring, {path for _, path in changes})

    def _ring(self, paths: set[str]) -> None:
        for path in paths:
            directory, _, name = path.rpartition("/")
            for bell in self._bells.get(directory, ()):
                if bell.is_meant(name):
                    bell.set()

    def _ring_all(self, directories: frozenset[str]) -> None:
        for directory in directories:
            for bell in self._bells.get(directory, ()):
                bell.set()
