"""Database threads: the order of work, its results, and work that nobody waits for any more."""

import asyncio
import gc
import subprocess
import sys
import threading
import weakref
from collections.abc import Iterator

import pytest

from projects.storage import threads as database_threads
from projects.storage.threads import (
    DatabaseThreads,
    LoopCalls,
    NotBegunError,
    after_result,
    calls_into_this_loop,
)


@pytest.fixture
def ended() -> list[str]:
    """Names of the threads that ended."""
    return []


@pytest.fixture
def threads(ended: list[str]) -> Iterator[DatabaseThreads]:
    """Database threads with one thread only."""
    one = DatabaseThreads(
        1, name="one", on_end=lambda: ended.append(threading.current_thread().name)
    )
    yield one
    one.close()


async def test_one_thread_does_everything_in_the_order_it_was_handed_over(
    threads: DatabaseThreads,
) -> None:
    done: list[tuple[int, int]] = []
    await asyncio.gather(
        *(threads.submit(lambda n=n: done.append((n, threading.get_ident()))) for n in range(100))
    )
    assert [number for number, _ in done] == list(range(100))
    assert len({thread for _, thread in done}) == 1


async def test_each_gets_its_own_result_or_error(threads: DatabaseThreads) -> None:
    results = await asyncio.gather(
        *(threads.submit(lambda n=n: 1 / n) for n in range(3)), return_exceptions=True
    )
    assert isinstance(results[0], ZeroDivisionError)
    assert results[1:] == [1.0, 0.5]


async def test_new_threads_begin_when_those_before_them_have_ended(
    threads: DatabaseThreads, ended: list[str]
) -> None:
    release = threading.Event()
    last = threads.submit(lambda: release.wait(10))
    heirs = DatabaseThreads(1, name="heir", on_end=lambda: None, after=threads.retire())
    first = heirs.submit(ended.copy)
    done, _ = await asyncio.wait([first], timeout=0.1)
    assert not done
    release.set()
    assert await first == ["one_0"]
    assert await last
    heirs.close()


async def test_threads_that_hang_are_not_waited_for_forever(
    threads: DatabaseThreads, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(database_threads, "AFTER_SECONDS", 0.05)
    release = threading.Event()
    last = threads.submit(lambda: release.wait(10))
    heirs = DatabaseThreads(1, name="heir", on_end=lambda: None, after=threads.retire())
    assert await heirs.submit(lambda: "begun") == "begun"
    release.set()
    await last
    heirs.close()


async def test_cancelled_before_it_began_it_never_runs(threads: DatabaseThreads) -> None:
    release, ran = threading.Event(), threading.Event()
    first, second = threads.submit(lambda: release.wait(10)), threads.submit(ran.set)
    second.cancel()
    release.set()
    await first
    await threads.submit(lambda: None)
    assert not ran.is_set()


async def test_work_that_waited_too_long_for_a_thread_is_given_up(
    threads: DatabaseThreads, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(database_threads, "WAIT_SECONDS", -1.0)
    ran = threading.Event()
    with pytest.raises(NotBegunError):
        await threads.submit(ran.set)
    assert not ran.is_set()


async def test_closing_lets_what_was_handed_over_come_to_its_end(ended: list[str]) -> None:
    several = DatabaseThreads(3, name="several", on_end=lambda: ended.append("several"))
    done: list[int] = []
    for number in range(20):
        several.submit(lambda n=number: done.append(n))
    await asyncio.to_thread(several.close)
    assert sorted(done) == list(range(20))
    assert ended == ["several"] * 3


def test_a_result_for_a_loop_that_is_gone_is_dropped_and_the_thread_lives(
    threads: DatabaseThreads,
) -> None:
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


async def test_a_thread_that_dies_before_it_begins_is_replaced(
    threads: DatabaseThreads, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(database_threads, "BEGIN_SECONDS", 0.0)
    with monkeypatch.context() as out_of_memory:
        out_of_memory.setattr("_thread.start_new_thread", lambda *_arguments: 0)
        first = threads.submit(lambda: "first")
    assert await threads.submit(lambda: "second") == "second"
    assert await first == "first"


@pytest.mark.parametrize("error", [MemoryError, SystemExit])
async def test_work_that_fails_together_is_answered_and_the_thread_lives(
    error: type[BaseException], ended: list[str]
) -> None:
    def fail(_: object) -> None:
        raise error

    release = threading.Event()
    shared = DatabaseThreads(
        1, name="one", on_end=lambda: ended.append("connection"), run_shared=fail
    )
    first = shared.submit(lambda: release.wait(10))
    both = [shared.submit(lambda: "never", may_share=True) for _ in range(2)]
    last = shared.submit(lambda: threading.current_thread().name)
    release.set()
    assert await first
    found = await asyncio.gather(*both, return_exceptions=True)
    assert [type(each) for each in found] == [error] * 2
    assert (await last, ended) == ("one_0", ["connection"])
    assert await shared.submit(lambda: "again") == "again"
    shared.close()


async def test_what_fails_after_a_result_costs_nobody_anything(threads: DatabaseThreads) -> None:
    def work() -> str:
        for call in (dict[str, str]().popitem, lambda: called.append("second")):
            after_result(call)
        return "done"

    called: list[str] = []
    assert await threads.submit(work) == "done"
    assert await threads.submit(lambda: called) == ["second"]


async def test_an_iterator_that_ends_is_an_error_like_others(threads: DatabaseThreads) -> None:
    with pytest.raises(RuntimeError):
        await threads.submit(lambda: next(iter([])))
    assert await threads.submit(lambda: "again") == "again"


_WITHOUT_MEMORY = """
import asyncio, resource
from projects.storage.threads import DatabaseThreads, NotBegunError

async def main():
    threads = DatabaseThreads(1, name="one", on_end=lambda: None)
    used = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
    before = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (used + (1 << 20), before[1]))
    try:
        await threads.submit(lambda: "never")
    except NotBegunError:
        print("refused")
    resource.setrlimit(resource.RLIMIT_AS, before)
    print(await threads.submit(lambda: "done"))
    threads.close()

asyncio.run(main())
"""


def test_work_without_memory_for_a_thread_is_refused_and_nothing_is_left() -> None:
    command = [sys.executable, "-c", _WITHOUT_MEMORY]
    told = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True)
    assert told.stdout == "refused\ndone\n"


def test_the_way_into_a_loop_does_not_keep_it_alive() -> None:
    async def way() -> tuple[weakref.ref[asyncio.AbstractEventLoop], LoopCalls]:
        return weakref.ref(asyncio.get_running_loop()), calls_into_this_loop()

    loop, calls = asyncio.run(way())
    gc.collect()
    assert loop() is None
    calls.put(lambda: None)
