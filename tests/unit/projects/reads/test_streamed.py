"""Reads of several hops: what a fault cut short never passes for all of it."""

import sqlite3
from collections.abc import Iterator

import pytest
from django.db import OperationalError

from projects.errors.server import StorageUnavailable
from projects.output import log as output_log
from projects.output.log import NewChunk, OutputSlice
from projects.reads import recordings, search
from projects.reads.streamed import streamed
from projects.storage.access import in_database
from tests.support.rows import make_controller, make_session

pytestmark = pytest.mark.django_db(transaction=True)


def _lock_lost() -> OperationalError:
    """The error of a statement that was surely not done, so that its hop is repeated."""
    cause = sqlite3.OperationalError("database is locked")
    cause.sqlite_errorcode = sqlite3.SQLITE_BUSY
    error = OperationalError("database is locked")
    error.__cause__ = cause
    return error


async def test_a_stream_whose_step_failed_is_broken_off() -> None:
    def parts() -> Iterator[int]:
        yield 1
        raise _lock_lost()

    found = streamed(parts(), lambda: None)
    assert await anext(found) == 1
    with pytest.raises(StorageUnavailable):
        await anext(found)


async def test_a_stream_without_a_fault_comes_to_its_end() -> None:
    assert [part async for part in streamed(iter([1, 2]), lambda: None)] == [1, 2]


async def test_a_search_and_a_download_are_broken_off_by_a_fault(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    session = await in_database(lambda: make_session(make_controller(), stdout_next_offset=8))
    chunks = [NewChunk(session.id, "stdout", at, at, b"abc\n") for at in (0, 4)]
    await in_database(output_log.append, chunks)
    real = output_log.read

    def fails_at_the_second(session_id: object, stream: object, offset: int, _: int) -> OutputSlice:
        if offset:
            raise _lock_lost()
        return real(session.id, "stdout", 0, 4)

    monkeypatch.setattr(output_log, "read", fails_at_the_second)
    with pytest.raises(StorageUnavailable):
        await search.output_search(session.project_id, "abc", session_id=session.id)
    found = streamed(recordings.export_pieces(session, "raw"), lambda: None)
    with pytest.raises(StorageUnavailable):
        assert not [part async for part in found]
