"""Looks at files end in time for their callers, and hold up nothing else, whatever a mount does."""

import asyncio
import threading
from collections.abc import Iterator
from errno import EAGAIN, ETIMEDOUT

import pytest

from controller_client.server_link import file_looks
from controller_client.server_link.file_looks import THREADS, FileLooks


@pytest.fixture
def hung() -> Iterator[threading.Event]:
    release = threading.Event()
    yield release
    release.set()


async def test_a_look_gives_what_it_found_or_raised() -> None:
    looks = FileLooks()
    assert await looks.take(10, sorted, [2, 1], reverse=True) == [2, 1]
    with pytest.raises(ZeroDivisionError):
        await looks.take(10, divmod, 1, 0)


async def test_looks_that_hang_end_in_time_and_keep_no_other_thread(hung: threading.Event) -> None:
    looks = FileLooks()
    tries = [looks.take(0.05, hung.wait) for _ in range(3 * THREADS)]
    ends = await asyncio.gather(*tries, return_exceptions=True)
    assert {end.errno for end in ends if isinstance(end, OSError)} == {ETIMEDOUT}
    assert len(ends) == 3 * THREADS
    assert await asyncio.to_thread(lambda: "other") == "other"
    hung.set()
    assert await looks.take(10, lambda: "again") == "again"


async def test_too_many_looks_at_once_are_refused(
    hung: threading.Event, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(file_looks, "MOST_LOOKS", 2)
    looks = FileLooks()
    waiting = [asyncio.create_task(looks.take(10, hung.wait)) for _ in range(2)]
    await asyncio.sleep(0)
    with pytest.raises(OSError, match="too many") as refused:
        await looks.take(10, hung.wait)
    assert refused.value.errno == EAGAIN
    hung.set()
    assert await asyncio.gather(*waiting) == [True, True]
