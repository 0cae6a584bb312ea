"""Hops to the database: threads of their own, bounded retries, and an honest refusal."""

import asyncio
import errno
import sqlite3
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress

import pytest
from django.db import OperationalError, connection, transaction

from projects.conf import conf
from projects.errors.server import StorageUnavailable
from projects.models import Project
from projects.storage import access as database
from projects.storage.access import (
    ATTEMPTS,
    LONG_THREADS,
    at_any_length,
    at_length,
    close_threads,
    in_database,
    in_upkeep,
)
from tests.support.descriptors import spare_descriptors

pytestmark = pytest.mark.django_db(transaction=True)


async def test_a_hop_commits_and_the_next_one_sees_it() -> None:
    await in_database(Project.objects.create, name="a")
    assert await in_database(Project.objects.filter(name="a").count) == 1


async def test_an_error_of_the_function_itself_passes_through() -> None:
    with pytest.raises(Project.DoesNotExist):
        await in_database(Project.objects.get, name="nobody")


async def test_what_takes_long_does_not_hold_up_the_others() -> None:
    release = threading.Event()
    others = [in_database, at_length, at_any_length, in_upkeep]
    for hop in (at_length, at_any_length, in_upkeep):
        slow = [asyncio.create_task(hop(release.wait, 10)) for _ in range(LONG_THREADS)]
        for other in others:
            if other is not hop:
                assert await other(Project.objects.count) == 0
        assert not any(one.done() for one in slow)
        release.set()
        assert await asyncio.gather(*slow) == [True] * LONG_THREADS
        release.clear()


async def test_no_more_threads_are_used_than_configured() -> None:
    names = await asyncio.gather(
        *(in_database(lambda: threading.current_thread().name) for _ in range(40))
    )
    assert len(set(names)) <= conf.database_threads


@contextmanager
def _locked() -> Iterator[None]:
    with closing(sqlite3.connect(connection.settings_dict["NAME"], isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        yield
        other.execute("ROLLBACK")


def _create_impatiently(name: str, tries: list[str]) -> Project:
    tries.append(name)
    with connection.cursor() as cursor:
        cursor.execute("PRAGMA busy_timeout = 1")
    try:
        with transaction.atomic():
            return Project.objects.create(name=name)
    finally:
        with connection.cursor() as cursor:
            cursor.execute("PRAGMA busy_timeout = 20000")


@pytest.mark.sqlite
async def test_a_lock_is_waited_for_by_trying_again_and_then_reported() -> None:
    tries: list[str] = []
    with _locked(), pytest.raises(StorageUnavailable):
        await in_database(_create_impatiently, "b", tries)
    assert len(tries) == ATTEMPTS
    await in_database(_create_impatiently, "b", tries)
    assert await in_database(Project.objects.count) == 1


async def test_a_transaction_whose_fate_is_unknown_is_not_repeated() -> None:
    tries: list[int] = []

    def dies() -> None:
        tries.append(1)
        raise OperationalError("server closed the connection unexpectedly")

    with pytest.raises(StorageUnavailable):
        await in_database(dies)
    assert len(tries) == 1


def _make_read_only() -> None:
    with connection.cursor() as cursor:
        # For PostgreSQL as if its server had become a standby.
        is_sqlite = connection.vendor == "sqlite"
        cursor.execute(
            "PRAGMA query_only = ON"
            if is_sqlite
            else "SET SESSION CHARACTERISTICS AS TRANSACTION READ ONLY"
        )


async def test_a_connection_that_became_read_only_is_replaced_in_every_thread(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(database._pools, "replaced_at", -database.REPLACE_SECONDS)
    await in_database(_make_read_only)
    await asyncio.gather(*[at_length(_make_read_only) for _ in range(LONG_THREADS)])
    await in_database(Project.objects.create, name="short")
    await asyncio.gather(
        *[at_length(Project.objects.create, name=f"long {n}") for n in range(2 * LONG_THREADS)]
    )
    assert await in_database(Project.objects.count) == 1 + 2 * LONG_THREADS


@pytest.mark.sqlite
async def test_a_storage_that_stays_broken_is_reported_and_recovers() -> None:
    def fails() -> None:
        _make_read_only()
        Project.objects.create(name="never")

    for _ in range(3):
        with pytest.raises(StorageUnavailable):
            await in_database(fails)
    await in_database(Project.objects.create, name="at last")
    assert await in_database(Project.objects.count) == 1


async def test_after_the_threads_were_closed_new_ones_are_made() -> None:
    await in_database(Project.objects.count)
    close_threads()
    assert await in_database(Project.objects.count) == 0


async def test_a_cancelled_hop_ends_harmlessly_in_its_thread() -> None:
    began, release = threading.Event(), threading.Event()

    def work() -> None:
        began.set()
        release.wait(10)
        Project.objects.create(name="c")

    hop = asyncio.create_task(in_database(work))
    await asyncio.to_thread(began.wait, 10)
    hop.cancel()
    with pytest.raises(asyncio.CancelledError):
        await hop
    release.set()
    await asyncio.to_thread(close_threads)
    assert await in_database(Project.objects.filter(name="c").count) == 1


@pytest.mark.parametrize("spare", [0, 1, 2])
@pytest.mark.parametrize("is_connected", [True, False])
async def test_a_process_without_descriptors_says_that_the_storage_is_away(
    is_connected: bool, spare: int
) -> None:
    await asyncio.gather(*[in_database(Project.objects.count) for _ in range(40)])
    if not is_connected:
        await asyncio.to_thread(close_threads)
    with spare_descriptors(spare):
        # A connection that needs no further descriptor may go on.
        for number in range(conf.database_threads + 1):
            with suppress(StorageUnavailable):
                await in_database(Project.objects.create, name=f"short {number}")
    await in_database(Project.objects.create, name="at last")
    assert await in_database(Project.objects.filter(name="at last").count) == 1


async def test_a_transaction_that_a_shortage_cuts_off_is_given_up() -> None:
    tries: list[int] = []

    def runs_short() -> None:
        tries.append(1)
        with transaction.atomic():
            Project.objects.create(name="undone")
            raise OSError(errno.EMFILE, "Too many open files")

    expected = StorageUnavailable if connection.vendor == "postgresql" else OSError
    with pytest.raises(expected):
        await in_database(runs_short)
    assert len(tries) == 1
    assert await in_database(Project.objects.count) == 0
