"""Threads for database work, and the way to them and back.

The way is short on purpose: a turn takes it several times. To hand a function over is one put into
a queue. Results that come back while the event loop is busy wake it once, together.
"""

import _thread
import asyncio
import logging
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from queue import Empty, SimpleQueue
from typing import Any, Final, TypeVar
from weakref import WeakKeyDictionary, ref

T = TypeVar("T")

AFTER_SECONDS: Final = 5.0
"""Threads wait this long for the threads in whose place they come."""
WAIT_SECONDS: Final = 20.0
"""Work that has not begun by then is given up: its caller must not wait for blocked threads."""
BEGIN_SECONDS: Final = 1.0
"""A thread that has not begun by then never will: it had no memory to begin with."""
MOST_SHARED: Final = 32
"""At most this many pieces of work share a transaction."""

RunShared = Callable[
    [Sequence[Callable[[], Any]]], Sequence[tuple[Any, BaseException | None]] | None
]
"""Runs functions in one transaction: the result or the error of each, for as many as were run.

None if nothing was done, and each has to be run by itself.
"""

logger = logging.getLogger(__name__)

_local = threading.local()


class NotBegunError(Exception):
    """The work was given up before it began."""


class LoopCalls:
    """Calls from threads into one event loop; those that come while it is busy wake it once."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        # Threads, and the table of these ways, must not keep a loop alive that nobody runs any
        # more. A bound method would.
        self._loop = ref(loop)
        self._arrived: deque[Callable[[], None]] = deque()
        self._is_on_its_way = False

    def put(self, call: Callable[[], None]) -> None:
        """Have the event loop make this call soon, after those that were put before it."""
        self._arrived.append(call)
        if not self._is_on_its_way:
            self._ask()

    def _ask(self) -> None:
        self._is_on_its_way = True
        # A loop that is closed or gone takes no call: nobody waits.
        with suppress(RuntimeError):
            if (loop := self._loop()) is not None:
                loop.call_soon_threadsafe(self._make)
                return
        self._arrived.clear()

    def _make(self) -> None:
        """Make all calls that arrived. The event loop calls this.

        The flag goes first: a call that arrives from now on asks again, at worst in vain.
        """
        self._is_on_its_way = False
        try:
            while self._arrived:
                self._arrived.popleft()()
        finally:
            # A call that failed leaves those behind it.
            if self._arrived and not self._is_on_its_way:
                self._ask()


_calls: WeakKeyDictionary[asyncio.AbstractEventLoop, LoopCalls] = WeakKeyDictionary()


def calls_into_this_loop() -> LoopCalls:
    """The way for threads into the event loop that is running here."""
    loop = asyncio.get_running_loop()
    calls = _calls.get(loop)
    if calls is None:
        calls = _calls[loop] = LoopCalls(loop)
    return calls


def after_result(call: Callable[[], None]) -> None:
    """Make ``call`` once the result of the work of this thread is on its way to its caller.

    In a thread that is none of DatabaseThreads the call is made at once.
    """
    later: list[Callable[[], None]] | None = getattr(_local, "later", None)
    if later is None:
        call()
    else:
        later.append(call)


class DatabaseThread:
    """A thread that does ``work``. Nobody waits for its begin, because it may never come.

    ``Thread.start`` waits for that. If the process is out of memory and the thread dies of it
    before it begins, the event loop waits in there for ever. Raises RuntimeError or MemoryError if
    there can be no thread.
    """

    def __init__(self, work: Callable[[], None], name: str) -> None:
        self._asked_at = time.monotonic()
        self._has_begun = False
        # Taken by the thread when it begins, or by whoever gives it up before.
        self._fate = threading.Lock()
        self._ended = threading.Event()
        _thread.start_new_thread(self._run, (work, name))

    @property
    def has_begun(self) -> bool:
        """True once the thread runs."""
        return self._has_begun

    def is_alive(self) -> bool:
        """False after the end of the work, and if the thread never began. It never will then."""
        is_late = time.monotonic() - self._asked_at >= BEGIN_SECONDS
        if is_late and not self._has_begun and self._fate.acquire(blocking=False):
            self._ended.set()
        return not self._ended.is_set()

    def join(self, seconds: float | None = None) -> None:
        """Return at the end of the work, after ``seconds``, or if the thread never begins."""
        if not self._has_begun:
            self._ended.wait(BEGIN_SECONDS if seconds is None else min(seconds, BEGIN_SECONDS))
        if self.is_alive():
            self._ended.wait(seconds)

    def _run(self, work: Callable[[], None], name: str) -> None:
        if not self._fate.acquire(blocking=False):
            return
        self._has_begun = True
        try:
            threading.current_thread().name = name
            work()
        finally:
            self._ended.set()


class DatabaseThreads:
    """At most ``count`` threads, made when first needed; ``on_end`` runs in each when it ends.

    It runs as well after an error that belongs to no piece of work, and takes the connection away.
    They begin when the threads in ``after`` have ended, or after AFTER_SECONDS. Pieces of
    work that may share a transaction, and wait at the same moment, go to ``run_shared`` together.
    """

    def __init__(
        self,
        count: int,
        *,
        name: str,
        on_end: Callable[[], None],
        after: Sequence[DatabaseThread] = (),
        run_shared: RunShared | None = None,
    ) -> None:
        self._count = count
        self._run_shared = run_shared
        self._after = after
        self._name = name
        self._on_end = on_end
        self._queue: SimpleQueue[_Job | None] = SimpleQueue()
        self._workers: list[DatabaseThread] = []
        self._is_complete = False

    def submit(self, function: Callable[[], T], *, may_share: bool = False) -> "asyncio.Future[T]":
        """The future result of ``function()`` in one of the threads.

        NotBegunError if no thread was free for WAIT_SECONDS, or if there can be none. A future that
        is cancelled before the work began stops it; work that has begun runs to its end.
        """
        if not self._is_complete:
            self._add_worker()
        future: asyncio.Future[T] = asyncio.get_running_loop().create_future()
        is_shared = may_share and self._run_shared is not None
        self._queue.put(_Job(function, future, calls_into_this_loop(), may_share=is_shared))
        return future

    def _add_worker(self) -> None:
        """Make another thread unless there are enough; one that died is replaced."""
        self._workers = [worker for worker in self._workers if worker.is_alive()]
        if len(self._workers) < self._count:
            try:
                worker = DatabaseThread(self._work, f"{self._name}_{len(self._workers)}")
            except (MemoryError, RuntimeError) as error:
                if not self._workers:
                    raise NotBegunError from error
                return
            self._workers.append(worker)
        self._is_complete = len(self._workers) == self._count and all(
            worker.has_begun for worker in self._workers
        )

    def retire(self) -> list[DatabaseThread]:
        """Ends the threads once everything handed over is done, without waiting for that.

        Returns the threads that are ending.
        """
        ending, self._workers, self._is_complete = self._workers, [], False
        for _ in ending:
            self._queue.put(None)
        return ending

    def close(self) -> None:
        """Returns when everything handed over is done and the threads have ended."""
        for worker in self.retire():
            worker.join()

    def _work(self) -> None:
        deadline = time.monotonic() + AFTER_SECONDS
        for worker in self._after:
            worker.join(max(0.0, deadline - time.monotonic()))
        try:
            while self._do_next():
                pass
        finally:
            self._is_complete = False
            self._on_end()

    def _do_next(self) -> bool:
        """Wait for work, and do what waits then. False after the end of the work."""
        *others, last = self._next_jobs()
        if others:
            if last is not None and last.may_share:
                others.append(last)
            self._do_together([job for job in others if job is not None and job.begins()])
        if last is not None and last not in others and last.begins():
            last.run()
        return last is not None

    def _next_jobs(self) -> "list[_Job | None]":
        """The next job and, if it may share, those behind it. Only the last may be another one."""
        jobs = [self._queue.get()]
        while len(jobs) < MOST_SHARED and (job := jobs[-1]) is not None and job.may_share:
            try:
                jobs.append(self._queue.get_nowait())
            except Empty:
                break
        return jobs

    def _do_together(self, jobs: "list[_Job]") -> None:
        """Do jobs, and answer each of them in any case."""
        try:
            while len(jobs) > 1 and self._run_shared is not None:
                with _calls_after():
                    outcomes = self._run_shared([job.function for job in jobs])
                    if outcomes is None:
                        break
                    for job, outcome in zip(jobs, outcomes, strict=False):
                        job.answer(*outcome)
                del jobs[: len(outcomes)]
        except BaseException as error:
            logger.exception("%s pieces of work failed together", len(jobs))
            for job in jobs:
                job.answer(None, error)
            # The work behind these has to be done in any case.
            try:
                self._on_end()
            except Exception:
                logger.exception("the end of a failed piece of work failed")
            return
        for job in jobs:
            job.run()


@contextmanager
def _calls_after() -> Iterator[None]:
    """Make the calls of ``after_result`` in the block at the end of the block."""
    later: list[Callable[[], None]] = []
    _local.later = later
    yield
    for call in later:
        try:
            call()
        except Exception:
            logger.exception("a call after a result failed")


class _Job:
    __slots__ = ("_calls", "_future", "_queued_at", "function", "may_share")

    def __init__(
        self,
        function: Callable[[], Any],
        future: "asyncio.Future[Any]",
        calls: LoopCalls,
        *,
        may_share: bool,
    ) -> None:
        self.function = function
        self.may_share = may_share
        self._future = future
        self._calls = calls
        self._queued_at = time.monotonic()

    def begins(self) -> bool:
        """False if nobody waits any more, or if the work is given up."""
        if self._future.cancelled():
            return False
        if time.monotonic() - self._queued_at > WAIT_SECONDS:
            self.answer(None, NotBegunError())
            return False
        return True

    def run(self) -> None:
        with _calls_after():
            try:
                result = self.function()
            except BaseException as error:  # noqa: BLE001 - every error belongs to the future
                self.answer(None, error)
            else:
                self.answer(result, None)

    def answer(self, result: Any, error: BaseException | None) -> None:
        self._calls.put(partial(_set, self._future, result, error))


def _set(future: "asyncio.Future[Any]", result: Any, error: BaseException | None) -> None:
    if future.done():
        return
    if isinstance(error, StopIteration):
        # No future takes it, and its caller would wait for ever.
        future.set_exception(RuntimeError("an iterator came to its end"))
    elif error is not None:
        future.set_exception(error)
    else:
        future.set_result(result)
