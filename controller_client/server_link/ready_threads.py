"""Threads that begin before they are needed.

Without memory a thread can die before it begins, and ``Thread.start`` of CPython then waits for
its begin for ever. Executors start their threads where work is handed over, which may be an event
loop. So a process starts its threads when it begins, while it has memory.
"""

import os
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Final

WORKERS: Final = min(32, (os.cpu_count() or 1) + 4)
"""Threads for what has to wait beside the event loop: as many as asyncio itself would make."""


def ready_executor(threads: int, name: str) -> ThreadPoolExecutor:
    """An executor all of whose threads have begun."""
    executor = ThreadPoolExecutor(threads, thread_name_prefix=name)
    # A thread is made for work that no other thread is free for.
    together = threading.Barrier(threads)
    for begun in [executor.submit(together.wait) for _ in range(threads)]:
        begun.result()
    return executor
