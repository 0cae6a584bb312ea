"""Transactions that share a commit: their order, and that none of them costs another anything."""

import asyncio
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Final, Literal

import pytest
from django.db import IntegrityError, OperationalError, connection, transaction
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from projects.errors.server import StorageUnavailable
from projects.models import Project
from projects.storage import access, shared
from projects.storage.access import in_database, in_shared_transaction
from projects.storage.shared import at_end, one_transaction, run_shared

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.sqlite]

Fate = Literal["done", "refused", "twice", "fault"]
ERRORS: Final = {"refused": ZeroDivisionError, "twice": IntegrityError, "fault": OperationalError}
FAR_SECONDS: Final = 3600.0


class Parts:
    """Parts that each add a project, and the things that they saw and caused."""

    def __init__(self) -> None:
        self.seen: dict[int, list[str]] = {}
        self.hooks: list[int] = []
        self.ends: list[tuple[int, bool]] = []

    def run(self, number: int, fate: Fate) -> int:
        """Add a project and meet the ``fate``; return the number."""
        with one_transaction():
            self.seen[number] = names()
            at_end(lambda is_committed: self.ends.append((number, is_committed)))
            transaction.on_commit(partial(self.hooks.append, number))
            with transaction.atomic(savepoint=False):
                Project.objects.create(name=f"p{number}")
                if fate == "twice":
                    Project.objects.create(id=Project.objects.get(name=f"p{number}").id)
                if fate != "done":
                    raise ERRORS[fate]
        return number


def names() -> list[str]:
    """The names of all projects, in the order in which they were made."""
    return [f"p{n}" for n in sorted(int(name[1:]) for name in _all_names())]


def _all_names() -> list[str]:
    return list(Project.objects.values_list("name", flat=True))


def _alone(part: Callable[[], int]) -> tuple[int | None, type[BaseException] | None]:
    try:
        return part(), None
    except tuple(ERRORS.values()) as error:
        return None, type(error)


@given(st.lists(st.sampled_from(["done", "done", "refused", "twice", "fault"]), max_size=8))
@settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_parts_end_as_if_each_had_run_alone(
    monkeypatch: pytest.MonkeyPatch, fates: list[Fate]
) -> None:
    monkeypatch.setattr(shared, "SHARING_SECONDS", FAR_SECONDS)
    Project.objects.all().delete()
    made, is_alone = Parts(), False
    parts = [partial(made.run, number, fate) for number, fate in enumerate(fates)]
    outcomes = run_shared(parts)
    if outcomes is None:
        is_alone = True
        assert names() == []
        assert made.hooks == []
        assert not any(is_committed for _, is_committed in made.ends)
        made.ends.clear()
        found = [_alone(part) for part in parts]
    else:
        found = [(each.result, each.error and type(each.error)) for each in outcomes]
    assert is_alone == ("fault" in fates)
    wanted = [
        (number, None) if fate == "done" else (None, ERRORS[fate])
        for number, fate in enumerate(fates)
    ]
    assert found == wanted
    done = [number for number, fate in enumerate(fates) if fate == "done"]
    assert names() == [f"p{number}" for number in done]
    assert made.hooks == done
    assert made.seen == {
        number: [f"p{before}" for before in done if before < number] for number in range(len(fates))
    }
    assert sorted(made.ends) == [(number, fate == "done") for number, fate in enumerate(fates)]


def test_a_part_whose_mark_stays_undoes_all_of_them() -> None:
    """Django ends such a transaction without an error, and without a commit."""

    def hides_its_error() -> None:
        Project.objects.create(name="p0")
        with suppress(ZeroDivisionError), transaction.atomic(savepoint=False):
            raise ZeroDivisionError

    assert run_shared([hides_its_error, hides_its_error]) is None
    assert names() == []


def test_parts_behind_a_long_one_are_left_for_the_next_commit(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(shared, "SHARING_SECONDS", 0.0)
    made = Parts()
    outcomes = run_shared([partial(made.run, number, "done") for number in range(3)])
    assert outcomes is not None
    assert names() == [f"p{number}" for number in range(len(outcomes))] == ["p0"]


def test_a_commit_that_fails_is_the_error_of_all(monkeypatch: pytest.MonkeyPatch) -> None:
    def fails() -> None:
        raise OperationalError("disk I/O error")

    monkeypatch.setattr(connection, "_commit", fails)
    made = Parts()
    outcomes = run_shared([partial(made.run, number, "done") for number in range(2)])
    monkeypatch.undo()
    assert outcomes is not None
    assert [type(each.error) for each in outcomes] == [OperationalError] * 2
    assert (names(), made.hooks) == ([], [])
    assert made.ends == [(0, False), (1, False)]


async def test_hops_that_wait_together_get_their_own_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shared, "SHARING_SECONDS", FAR_SECONDS)
    made, release, commits = Parts(), threading.Event(), list[str]()
    busy = asyncio.create_task(in_database(release.wait, FAR_SECONDS))
    fates: list[Fate] = ["done", "refused", "done", "twice", "done"]

    def run(number: int, fate: Fate) -> int:
        if number == 0:
            connection.run_on_commit.append((set(), partial(commits.append, "commit"), False))
        return made.run(number, fate)

    hops = [
        asyncio.create_task(in_shared_transaction(run, number, fate))
        for number, fate in enumerate(fates)
    ]
    await asyncio.sleep(0)
    hops[2].cancel()
    release.set()
    await busy
    found = await asyncio.gather(*hops, return_exceptions=True)
    assert [each if isinstance(each, int) else type(each) for each in found] == [
        0,
        ZeroDivisionError,
        asyncio.CancelledError,
        IntegrityError,
        4,
    ]
    assert await in_database(names) == ["p0", "p4"]
    # All of them began before the first one was committed.
    assert (commits, sorted(made.seen)) == (["commit"], [0, 1, 3, 4])


async def test_a_fault_of_one_hop_is_told_to_that_hop_alone() -> None:
    made, release = Parts(), threading.Event()
    busy = asyncio.create_task(in_database(release.wait, FAR_SECONDS))
    fates: list[Fate] = ["done", "fault", "done"]
    hops = [
        asyncio.create_task(in_shared_transaction(made.run, number, fate))
        for number, fate in enumerate(fates)
    ]
    await asyncio.sleep(0)
    release.set()
    await busy
    found = await asyncio.gather(*hops, return_exceptions=True)
    assert [each if isinstance(each, int) else type(each) for each in found] == [
        0,
        StorageUnavailable,
        2,
    ]
    assert await in_database(names) == ["p0", "p2"]


async def test_hops_that_wait_for_a_damaged_file_are_all_answered(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(access._pools, "replaced_at", -access.REPLACE_SECONDS)
    made, began, release = Parts(), threading.Event(), threading.Event()
    busy = asyncio.create_task(in_database(lambda: (began.set(), release.wait(FAR_SECONDS))))
    await asyncio.to_thread(began.wait, FAR_SECONDS)
    (tmp_path / "damaged").write_bytes(b"no database" * 1000)
    with monkeypatch.context() as damaged:
        damaged.setitem(connection.settings_dict, "NAME", str(tmp_path / "damaged"))
        hops = [
            asyncio.create_task(in_shared_transaction(made.run, number, "done"))
            for number in range(3)
        ]
        await asyncio.sleep(0)
        release.set()
        await busy
        found = await asyncio.gather(*hops, return_exceptions=True)
    assert [type(each) for each in found] == [StorageUnavailable] * 3
    assert await in_shared_transaction(made.run, 3, "done") == 3
    assert await in_database(names) == ["p3"]


def test_parts_that_run_out_of_memory_are_run_by_themselves() -> None:
    made = Parts()

    def without_memory() -> int:
        made.run(1, "done")
        raise MemoryError

    assert run_shared([partial(made.run, 0, "done"), without_memory]) is None
    assert names() == []


def test_a_part_that_cannot_be_undone_takes_all_parts_with_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    made, real = Parts(), shared.execute

    def cannot_undo(statement: str, parameters: Sequence[object]) -> object:
        if statement.startswith("ROLLBACK"):
            raise InterruptedError
        return real(statement, parameters)

    monkeypatch.setattr(shared, "execute", cannot_undo)
    assert run_shared([partial(made.run, 0, "done"), partial(made.run, 1, "refused")]) is None
    assert names() == []
