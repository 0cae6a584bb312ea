"""Threads that begin before they are needed, and not on the way of a request.

Without memory a thread can die before it begins, and ``Thread.start`` of CPython then waits for
its begin for ever. On the event loop that is the end of a server, and executors start their threads
there. So a server starts its threads when it begins, while it has memory.
"""

import asyncio
import os
import threading
from collections.abc import AsyncIterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from typing import Final
from weakref import WeakSet

from asgiref.sync import ThreadSensitiveContext

PAGE_THREADS: Final = 4
"""As many pages are made side by side before Django makes a thread for each."""
# As many as asyncio itself would make.
_WORKERS: Final = min(32, (os.cpu_count() or 1) + 4)

_pages: list[ThreadPoolExecutor] = []
"""The threads that no page has now."""
_served: WeakSet[asyncio.AbstractEventLoop] = WeakSet()


def ready_executor(threads: int, name: str) -> ThreadPoolExecutor:
    """An executor all of whose threads have begun."""
    executor = ThreadPoolExecutor(threads, thread_name_prefix=name)
    # A thread is made for work that no other thread is free for.
    together = threading.Barrier(threads)
    for begun in [executor.submit(together.wait) for _ in range(threads)]:
        begun.result()
    return executor


def ensure_begun() -> None:
    """Begin the threads of this process, unless the running loop has them."""
    loop = asyncio.get_running_loop()
    if loop in _served:
        return
    _served.add(loop)
    loop.set_default_executor(ready_executor(_WORKERS, "worker"))
    _pages[:] = [ready_executor(1, f"page_{number}") for number in range(PAGE_THREADS)]


@asynccontextmanager
async def page_thread() -> AsyncIterator[None]:
    """Run what a page does outside the event loop in one thread, which it has for itself.

    Django makes a thread for a page that finds none free.
    """
    if not _pages:
        yield
        return
    executor = _pages.pop()
    try:
        async with ThreadSensitiveContext(executor=executor):
            yield
    finally:
        # A page that was given up may have left work behind, which comes first.
        executor.submit(int).add_done_callback(lambda _: _pages.append(executor))
