"""Threads for database work, and the way to them and back.

The way is short on purpose: a turn takes it five times. To hand a function over is one put into a
queue. Results that come back while the event loop is busy wake it once, together.
"""

import asyncio
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from queue import SimpleQueue
from typing import Any, Final, TypeVar
from weakref import WeakKeyDictionary

T = TypeVar("T")

AFTER_SECONDS: Final = 5.0
"""Threads wait this long for the threads in whose place they come."""
WAIT_SECONDS: Final = 20.0
"""Work that has not begun by then is given up: its caller must not wait for blocked threads."""


class NotBegunError(Exception):
    """The work was given up before it began."""


class DatabaseThreads:
    """At most ``count`` threads, made when first needed; ``on_end`` runs in each when it ends.

    They begin their work when the threads in ``after`` have ended, or after AFTER_SECONDS.
    """

    def __init__(
        self,
        count: int,
        *,
        name: str,
        on_end: Callable[[], None],
        after: Sequence[threading.Thread] = (),
    ) -> None:
        self._count = count
        self._after = after
        self._name = name
        self._on_end = on_end
        self._queue: SimpleQueue[_Job | None] = SimpleQueue()
        self._threads: list[threading.Thread] = []
        self._results: WeakKeyDictionary[asyncio.AbstractEventLoop, _Results] = WeakKeyDictionary()

    def submit(self, function: Callable[[], T]) -> "asyncio.Future[T]":
        """The future result of ``function()`` in one of the threads.

        NotBegunError if no thread was free for WAIT_SECONDS. A future that is cancelled before the
        work began stops it; work that has begun runs to its end.
        """
        loop = asyncio.get_running_loop()
        results = self._results.get(loop)
        if results is None:
            results = self._results[loop] = _Results(loop)
        future: asyncio.Future[T] = loop.create_future()
        self._queue.put(_Job(function, future, results))
        if len(self._threads) < self._count:
            thread = threading.Thread(
                target=self._work, name=f"{self._name}_{len(self._threads)}", daemon=True
            )
            self._threads.append(thread)
            thread.start()
        return future

    def retire(self) -> list[threading.Thread]:
        """Ends the threads once everything handed over is done, without waiting for that.

        Returns the threads that are ending.
        """
        ending, self._threads = self._threads, []
        for _ in ending:
            self._queue.put(None)
        return ending

    def close(self) -> None:
        """Returns when everything handed over is done and the threads have ended."""
        for _ in self._threads:
            self._queue.put(None)
        for thread in self._threads:
            thread.join()

    def _work(self) -> None:
        deadline = time.monotonic() + AFTER_SECONDS
        for thread in self._after:
            thread.join(max(0.0, deadline - time.monotonic()))
        while (job := self._queue.get()) is not None:
            job.run()
            # Dropped before the wait for the next job: its result may be large.
            del job
        self._on_end()


class _Job:
    __slots__ = ("_function", "_future", "_queued_at", "_results")

    def __init__(
        self, function: Callable[[], Any], future: "asyncio.Future[Any]", results: "_Results"
    ) -> None:
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
        except BaseException as error:  # noqa: BLE001 - every error belongs to the future
            self._results.put(self._future, None, error)
        else:
            self._results.put(self._future, result, None)


class _Results:
    """Results on their way to one event loop."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        # A bound method instead of the loop: the threads must not keep a loop alive that nobody
        # runs any more.
        self._call_soon = loop.call_soon_threadsafe
        self._arrived: deque[tuple[asyncio.Future[Any], Any, BaseException | None]] = deque()
        self._is_on_its_way = False

    def put(self, future: "asyncio.Future[Any]", result: Any, error: BaseException | None) -> None:
        """Hands a result over. The database threads call this."""
        self._arrived.append((future, result, error))
        if not self._is_on_its_way:
            self._is_on_its_way = True
            try:
                self._call_soon(self._deliver)
            except RuntimeError:
                # The loop was closed: nobody waits.
                self._arrived.clear()

    def _deliver(self) -> None:
        """Sets the results of all futures that arrived. The event loop calls this.

        The flag goes first: a result that arrives from now on calls again, at worst in vain.
        """
        self._is_on_its_way = False
        while self._arrived:
            future, result, error = self._arrived.popleft()
            if future.cancelled():
                continue
            if error is not None:
                future.set_exception(error)
            else:
                future.set_result(result)
