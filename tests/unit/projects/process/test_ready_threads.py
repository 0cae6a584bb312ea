"""Threads of a server begin before they are needed, and each page has one for itself."""

import asyncio
import threading

from asgiref.sync import ThreadSensitiveContext, sync_to_async

from projects.process import ready_threads
from projects.process.ready_threads import PAGE_THREADS, page_thread
from tests.support.waiting import await_until


def _thread() -> str:
    return threading.current_thread().name


async def _pages(count: int) -> list[str]:
    """The threads of as many pages, which are made side by side."""
    together = asyncio.Barrier(count)

    async def page() -> str:
        # Django enters the second one for each page.
        async with page_thread(), ThreadSensitiveContext():
            first = await sync_to_async(_thread)()
            await together.wait()
            assert await sync_to_async(_thread)() == first
        return first

    return await asyncio.gather(*(page() for _ in range(count)))


async def _begun() -> None:
    ready_threads.ensure_begun()
    await await_until(lambda: len(ready_threads._pages) == PAGE_THREADS, 60, "all threads free")


def _ours(threads: list[str]) -> int:
    return len({thread for thread in threads if thread.startswith("page_")})


async def test_pages_side_by_side_have_threads_that_were_there_before() -> None:
    await _begun()
    before = set(threading.enumerate())
    for _ in range(3):
        assert _ours(await _pages(PAGE_THREADS)) == PAGE_THREADS
        await _begun()
    assert set(threading.enumerate()) <= before


async def test_more_pages_than_threads_are_made_too() -> None:
    await _begun()
    threads = await _pages(PAGE_THREADS + 2)
    assert _ours(threads) == PAGE_THREADS
    assert len(set(threads)) == PAGE_THREADS + 2


async def test_a_thread_with_work_of_a_page_that_was_given_up_waits_for_it() -> None:
    await _begun()
    loop, may_end, begun = asyncio.get_running_loop(), threading.Event(), asyncio.Event()

    def work() -> None:
        loop.call_soon_threadsafe(begun.set)
        may_end.wait(60)

    async with page_thread():
        left = asyncio.create_task(sync_to_async(work)())
        await begun.wait()
    assert _ours(await _pages(PAGE_THREADS)) == PAGE_THREADS - 1
    may_end.set()
    await left
