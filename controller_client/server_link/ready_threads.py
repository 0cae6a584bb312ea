"""Threads that begin before they are needed.

Without memory a thread can die before it begins, and ``Thread.start`` of CPython then waits for
its begin for ever. Executors start their threads where work is handed over, which may be an event
loop. So a process starts its threads when it begins, while it has memory.

A thread may also never end: one that looks at a mount that answers no more. Python waits for all
threads at its end, so such a thread would keep the process. Here nothing waits longer for it than
LAST_SECONDS.
"""

import logging
import os
import sys
import threading
import time
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import Final
from weakref import WeakSet

WORKERS: Final = min(32, (os.cpu_count() or 1) + 4)
"""Threads for what has to wait beside the event loop: as many as asyncio itself would make."""
LAST_SECONDS: Final = 3.0
"""Threads have this long to end when an executor, or the process, is at its end."""


class ReadyExecutor(ThreadPoolExecutor):
    """An executor all of whose threads have begun, and which does not wait for ever for them."""

    def __init__(self, threads: int, name: str) -> None:
        super().__init__(threads, thread_name_prefix=name)
        # A thread is made for work that no other thread is free for.
        together = threading.Barrier(threads)

        def begin() -> threading.Thread:
            together.wait()
            return threading.current_thread()

        begun = [self.submit(begin) for _ in range(threads)]
        self._ready = [each.result() for each in begun]
        _executors.add(self)

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """Take no more work; wait for what is under way, but no longer than LAST_SECONDS."""
        super().shutdown(wait=False, cancel_futures=cancel_futures)
        if wait:
            _await_ends(self._ready)


_executors: WeakSet[ReadyExecutor] = WeakSet()


def ready_executor(threads: int, name: str) -> ThreadPoolExecutor:
    """An executor all of whose threads have begun."""
    return ReadyExecutor(threads, name)


def leave(code: int) -> None:
    """End the process with ``code`` if a thread does not end; else return."""
    for executor in list(_executors):
        executor.shutdown(wait=False, cancel_futures=True)
    own = threading.current_thread()
    others = [each for each in threading.enumerate() if each is not own and not each.daemon]
    if _await_ends(others):
        return
    logging.shutdown()
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError, ValueError):
            stream.flush()
    os._exit(code)


def _await_ends(threads: Iterable[threading.Thread]) -> bool:
    """Wait for the ends of the threads; tell whether all came in time."""
    until = time.monotonic() + LAST_SECONDS
    for thread in threads:
        thread.join(max(0.0, until - time.monotonic()))
        if thread.is_alive():
            return False
    return True
