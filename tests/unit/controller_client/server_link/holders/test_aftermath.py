"""Cleaning up after a dead holder on a host that cannot do everything at once."""

import errno
from collections.abc import Callable, Coroutine
from pathlib import Path
from uuid import uuid4

import pytest

from controller_client.protocol.messages import InteractiveCmdDone, StartInteractiveCmd
from controller_client.server_link.holders import aftermath
from controller_client.server_link.holders.aftermath import Aftermath, Ended
from controller_client.server_link.holders.dead_holder import DeadHolder
from controller_client.server_link.holders.leftovers import Leftovers
from controller_client.session_files.directory import SessionDirectory, create, directory_of
from controller_client.system.adoption import Left


def _aftermath(
    directory: SessionDirectory, adopted_of: Callable[[str], Coroutine[object, object, Left]]
) -> Aftermath:
    return Aftermath(directory, None, adopted_of, Leftovers(directory))


@pytest.fixture(autouse=True)
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(aftermath, "RETRY_SECONDS", 0.0)


async def test_a_failed_look_for_lost_processes_is_retried(tmp_path: Path) -> None:
    looks: list[str] = []

    async def adopted_of(session_id: str) -> Left:
        looks.append(session_id)
        if len(looks) < 3:
            raise OSError(errno.EMFILE, "Too many open files")
        return Left([], True)

    ended = await _aftermath(SessionDirectory(tmp_path), adopted_of).end_processes()
    assert (ended.survivors, ended.is_all) == ([], True)
    assert len(looks) >= 3


async def test_nothing_is_left_only_if_the_last_look_was_settled(tmp_path: Path) -> None:
    """A program that forks and ends for ever hides from some looks."""
    unsettled = Left([], is_all=False, is_settled=False)
    looks = [unsettled, unsettled, Left([], is_all=True)]

    async def adopted_of(_session_id: str) -> Left:
        return looks.pop(0) if len(looks) > 1 else looks[0]

    assert (await _aftermath(SessionDirectory(tmp_path), adopted_of).end_processes()).is_all
    looks[:] = [unsettled]
    assert not (await _aftermath(SessionDirectory(tmp_path), adopted_of).end_processes()).is_all


async def test_a_loss_is_recorded_as_soon_as_the_start_can_be_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def adopted_of(_session_id: str) -> Left:
        raise NotImplementedError

    start = StartInteractiveCmd(seq=1, session_id=str(uuid4()), command="true")
    create(tmp_path, start)
    directory = directory_of(tmp_path, start.session_id)
    dead = DeadHolder.claim(directory)
    assert dead is not None
    reads: list[int] = []

    def read_start(_directory: SessionDirectory) -> StartInteractiveCmd:
        reads.append(1)
        if len(reads) < 3:
            raise OSError(errno.EMFILE, "Too many open files")
        return start

    monkeypatch.setattr(SessionDirectory, "read_start", read_start)
    await _aftermath(directory, adopted_of).record_loss(dead, Ended([], is_all=True))
    messages = dead.closing_messages({})
    ends = [done.end_reason for done in messages if isinstance(done, InteractiveCmdDone)]
    assert ends == ["lost"]
