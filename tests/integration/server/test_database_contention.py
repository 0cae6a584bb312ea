"""Writers that block each other on the database of this run.

A transaction that the database rolls back for that reason is retried, and no caller notices.
"""

import asyncio
import threading

import pytest
from django.db import connection, transaction
from django.db.models import F

from projects.models import Project
from projects.storage.access import in_database

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.fault]

_WRITERS = 8
_TIMES = 25


@transaction.atomic
def _read_then_write(name: str) -> None:
    limit = (
        Project.objects.select_for_update(no_key=True)
        .values_list("max_interactive_sessions", flat=True)
        .get(name=name)
    )
    Project.objects.filter(name=name).update(max_interactive_sessions=limit + 1)


async def test_eight_writers_that_read_before_they_write_lose_no_write() -> None:
    await in_database(Project.objects.create, name="counted", max_interactive_sessions=0)

    async def write() -> None:
        for _ in range(_TIMES):
            await in_database(_read_then_write, "counted")

    await asyncio.gather(*(write() for _ in range(_WRITERS)))
    assert (
        await in_database(Project.objects.get, name="counted")
    ).max_interactive_sessions == _WRITERS * _TIMES


async def test_two_transactions_in_a_deadlock_both_commit() -> None:
    for name in ("first", "second"):
        await in_database(Project.objects.create, name=name, max_interactive_sessions=0)
    have_begun = threading.Barrier(2)
    attempts: list[str] = []

    def add_to_both(one: str, other: str) -> None:
        attempts.append(one)
        with transaction.atomic():
            Project.objects.filter(name=one).update(
                max_interactive_sessions=F("max_interactive_sessions") + 1
            )
            # SQLite has one writer, so it has no deadlocks.
            if connection.vendor == "postgresql" and attempts.count(one) == 1:
                have_begun.wait(60)
            Project.objects.filter(name=other).update(
                max_interactive_sessions=F("max_interactive_sessions") + 1
            )

    await asyncio.gather(
        in_database(add_to_both, "first", "second"), in_database(add_to_both, "second", "first")
    )
    limits = await in_database(
        lambda: list(Project.objects.values_list("max_interactive_sessions", flat=True))
    )
    assert limits == [2, 2]
    assert len(attempts) == (3 if connection.vendor == "postgresql" else 2)
