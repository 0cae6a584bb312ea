"""The threads themselves: order, results, and what becomes of work that nobody wants or nobody had time for."""

import asyncio
import threading
from collections.abc import Iterator

import pytest

from projects import database_threads
from projects.database_threads import DatabaseThreads, NotBegunError


@pytest.fixture
def ended() -> list[str]:
    """Names of the threads that ended."""
    return []


@pytest.fixture
def threads(ended: list[str]) -> Iterator[DatabaseThreads]:
    """One thread."""
    one = DatabaseThreads(1, name="one", on_end=lambda: ended.append(threading.current_thread().name))
    yield one
    one.close()


async def test_one_thread_does_everything_in_the_order_it_was_handed_over(threads: DatabaseThreads) -> None:
    done: list[tuple[int, int]] = []
    await asyncio.gather(*(threads.submit(lambda n=n: done.append((n, threading.get_ident()))) for n in range(100)))  # type: ignore[misc]
    assert [number for number, _ in done] == list(range(100))
    assert len({thread for _, thread in done}) == 1


async def test_each_gets_its_own_result_or_error(threads: DatabaseThreads) -> None:
    results = await asyncio.gather(*(threads.submit(lambda n=n: 1 / n) for n in range(3)), return_exceptions=True)  # type: ignore[misc]
    assert isinstance(results[0], ZeroDivisionError)
    assert results[1:] == [1.0, 0.5]


async def test_cancelled_before_it_began_it_never_runs(threads: DatabaseThreads) -> None:
    release, ran = threading.Event(), threading.Event()
    first, second = threads.submit(lambda: release.wait(10)), threads.submit(ran.set)
    second.cancel()
    release.set()
    await first
    await threads.submit(lambda: None)
    assert not ran.is_set()


async def test_work_that_waited_too_long_for_a_thread_is_given_up(threads: DatabaseThreads, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(database_threads, "WAIT_SECONDS", -1.0)
    ran = threading.Event()
    with pytest.raises(NotBegunError):
        await threads.submit(ran.set)
    assert not ran.is_set()


async def test_closing_lets_what_was_handed_over_come_to_its_end(ended: list[str]) -> None:
    several = DatabaseThreads(3, name="several", on_end=lambda: ended.append("several"))
    done: list[int] = []
    for number in range(20):
        several.submit(lambda n=number: done.append(n))  # type: ignore[misc]
    await asyncio.to_thread(several.close)
    assert sorted(done) == list(range(20))
    assert ended == ["several"] * 3


def test_a_result_for_a_loop_that_is_gone_is_dropped_and_the_thread_lives(threads: DatabaseThreads) -> None:
    began, release = threading.Event(), threading.Event()

    def work() -> None:
        began.set()
        release.wait(10)

    async def leave() -> None:
        threads.submit(work)
        await asyncio.to_thread(began.wait, 10)

    asyncio.run(leave())
    release.set()

    async def again() -> int:
        result: int = await threads.submit(lambda: 3)
        return result

    assert asyncio.run(again()) == 3
