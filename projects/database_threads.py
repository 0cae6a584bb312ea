"""Threads that database work runs in, and the way there and back.

The way is short on purpose: a turn takes it five times. Handing a function over is one put into a queue, and results that come back
while the event loop is busy wake it once, together.
"""

import asyncio
import threading
import time
from collections import deque
from collections.abc import Callable
from queue import SimpleQueue
from typing import Any, Final
from weakref import WeakKeyDictionary

WAIT_SECONDS: Final = 20.0
"""Work that has not begun by then is given up: whoever wants it must not wait for what may hold up the threads."""


class NotBegunError(Exception):
    """The work was given up before it began."""


class DatabaseThreads:
    """At most ``count`` threads, made when first needed; ``on_end`` runs in each when it ends."""

    def __init__(self, count: int, *, name: str, on_end: Callable[[], None]) -> None:
        self._count = count
        self._name = name
        self._on_end = on_end
        self._queue: SimpleQueue[_Job | None] = SimpleQueue()
        self._threads: list[threading.Thread] = []
        self._results: WeakKeyDictionary[asyncio.AbstractEventLoop, _Results] = WeakKeyDictionary()

    def submit(self, function: Callable[[], Any]) -> "asyncio.Future[Any]":
        """What ``function()`` returns or raises; NotBegunError if no thread was free for WAIT_SECONDS.

        Cancelled before it began, it never runs; after that it runs to its end.
        """
        loop = asyncio.get_running_loop()
        results = self._results.get(loop)
        if results is None:
            results = self._results[loop] = _Results(loop)
        future: asyncio.Future[Any] = loop.create_future()
        self._queue.put(_Job(function, future, results))
        if len(self._threads) < self._count:
            thread = threading.Thread(target=self._work, name=f"{self._name}_{len(self._threads)}", daemon=True)
            self._threads.append(thread)
            thread.start()
        return future

    def close(self) -> None:
        """Returns when everything handed over is done and the threads have ended."""
        for _ in self._threads:
            self._queue.put(None)
        for thread in self._threads:
            thread.join()

    def _work(self) -> None:
        while (job := self._queue.get()) is not None:
            job.run()
            # Not kept until the next one comes: its result may be large.
            del job
        self._on_end()


class _Job:
    __slots__ = ("_function", "_future", "_queued_at", "_results")

    def __init__(self, function: Callable[[], Any], future: "asyncio.Future[Any]", results: "_Results") -> None:
        self._function = function
        self._future = future
        self._results = results
        self._queued_at = time.monotonic()

    def run(self) -> None:
        if self._future.cancelled():
            return
        if time.monotonic() - self._queued_at > WAIT_SECONDS:
            self._results.put(self._future, None, NotBegunError())
            return
        try:
            result = self._function()
        except BaseException as error:  # noqa: BLE001 - whatever it is belongs to whoever waits for it
            self._results.put(self._future, None, error)
        else:
            self._results.put(self._future, result, None)


class _Results:
    """Results on their way to one event loop."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        # The threads must not keep a loop alive that nobody runs any more; futures know theirs anyway.
        self._call_soon = loop.call_soon_threadsafe
        self._arrived: deque[tuple[asyncio.Future[Any], Any, BaseException | None]] = deque()
        self._is_on_its_way = False

    def put(self, future: "asyncio.Future[Any]", result: Any, error: BaseException | None) -> None:
        """Called by the threads."""
        self._arrived.append((future, result, error))
        if not self._is_on_its_way:
            self._is_on_its_way = True
            try:
                self._call_soon(self._deliver)
            except RuntimeError:
                # The loop was closed: nobody waits.
                self._arrived.clear()

    def _deliver(self) -> None:
        """Called by the loop. The flag first: what arrives from now on calls again, in vain at worst."""
        self._is_on_its_way = False
        while self._arrived:
            future, result, error = self._arrived.popleft()
            if future.cancelled():
                continue
            if error is not None:
                future.set_exception(error)
            else:
                future.set_result(result)
