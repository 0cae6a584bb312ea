"""Threads of a server, for its pages among others, that begin before they are needed.

``controller_client.server_link.ready_threads`` has the reason.
"""

import asyncio
from collections.abc import AsyncIterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from typing import Final
from weakref import WeakSet

from asgiref.sync import ThreadSensitiveContext

from controller_client.server_link.ready_threads import WORKERS, ready_executor

PAGE_THREADS: Final = 4
"""As many pages are made side by side before Django makes a thread for each."""
_pages: list[ThreadPoolExecutor] = []
"""The threads that no page has now."""
_served: WeakSet[asyncio.AbstractEventLoop] = WeakSet()


def ensure_begun() -> None:
    """Begin the threads of this process, unless the running loop has them."""
    loop = asyncio.get_running_loop()
    if loop in _served:
        return
    _served.add(loop)
    loop.set_default_executor(ready_executor(WORKERS, "worker"))
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
