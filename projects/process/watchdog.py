"""The watchdog of the event loop: a server whose loop stands still ends, and is started again.

A server that answers nothing for ever is worse than one that died. Whoever supervises a server
starts a dead one again, callers and hosts go on elsewhere meanwhile, and nothing that was
acknowledged is lost. One way to such a loop is known: without memory a thread can die before it
begins, and ``Thread.start`` of CPython waits for its begin for ever. ``ready_threads`` keeps a
server from that, but for more pages at once than it has threads for.

A thread that was made in time asks the loop once a second to show that it runs. Time in which the
whole process stood still (SIGSTOP, a machine that was suspended) counts as one second.
"""

import asyncio
import faulthandler
import os
import sys
import threading
from collections.abc import Callable
from typing import Final

STILL_SECONDS = 60
"""A loop that has not run for so many looks, one a second, will never run again."""
EXIT_CODE: Final = 70
"""The exit code of a server that was ended by its watchdog."""
_LOOK_SECONDS: Final = 1.0
_TOLD: Final = b"the event loop stands still: this process ends. Its threads are at:\n"


class Watchdog:
    """A thread that calls ``on_still`` when ``loop`` has not run for ``still_seconds`` looks."""

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        on_still: Callable[[], None],
        *,
        still_seconds: int,
    ) -> None:
        self._loop, self._on_still, self._still_seconds = loop, on_still, still_seconds
        self._has_run = True
        self._still = 0

    def start(self) -> None:
        """Watch from another thread, until the loop is closed."""
        threading.Thread(target=self._watch, name="watchdog", daemon=True).start()

    def look(self) -> bool:
        """Look once, and ask the loop to run. Returns False if the loop is closed."""
        if not self._has_run:
            self._still += 1
            if self._still >= self._still_seconds:
                self._on_still()
            return True
        self._still = 0
        try:
            self._has_run = False
            self._loop.call_soon_threadsafe(self._on_loop)
        except MemoryError:
            # The loop was not asked, so it owes nothing.
            self._has_run = True
        except RuntimeError:
            return False
        return True

    def _on_loop(self) -> None:
        self._has_run = True

    def _watch(self) -> None:
        # A lock that nobody gives back: to wait for it takes no memory, unlike an Event.
        never = threading.Lock()
        with never:
            while self.look():
                never.acquire(timeout=_LOOK_SECONDS)


def end_process() -> None:
    """End this process at once, and say where its threads were."""
    os.write(sys.stderr.fileno(), _TOLD)
    faulthandler.dump_traceback(all_threads=True)
    os._exit(EXIT_CODE)


_watched: list[asyncio.AbstractEventLoop] = []


def ensure_watching() -> None:
    """Watch the running loop of a server, unless it is watched already."""
    loop = asyncio.get_running_loop()
    if loop in _watched:
        return
    _watched[:] = [loop]
    Watchdog(loop, end_process, still_seconds=STILL_SECONDS).start()
