"""A session whose holder is dead is claimed and reported from its directory."""

import os
from pathlib import Path
from uuid import uuid4

import pytest

from controller_client.protocol.messages import (
    Gap,
    InteractiveCmdDone,
    StartInteractiveCmd,
    StreamFinal,
)
from controller_client.server_link.holders.dead_holder import DeadHolder
from controller_client.session_files.directory import SessionDirectory, create, directory_of

EMPTY_SHA256 = "0" * 64


@pytest.fixture
def directory(tmp_path: Path) -> SessionDirectory:
    session_id = str(uuid4())
    assert create(tmp_path, StartInteractiveCmd(seq=1, session_id=session_id, command="true"))
    return directory_of(tmp_path, session_id)


def _claim(directory: SessionDirectory) -> DeadHolder:
    remains = DeadHolder.claim(directory)
    assert remains is not None
    return remains


def test_a_session_with_a_living_holder_is_not_claimed(directory: SessionDirectory) -> None:
    held = directory.lock()
    assert held is not None
    assert DeadHolder.claim(directory) is None
    os.close(held)
    _claim(directory).release()


def test_a_late_holder_cannot_take_over_a_claimed_session(directory: SessionDirectory) -> None:
    remains = _claim(directory)
    assert directory.lock() is None
    remains.release()


def test_claiming_a_removed_session_fails_as_file_not_found(directory: SessionDirectory) -> None:
    directory.remove()
    with pytest.raises(FileNotFoundError):
        DeadHolder.claim(directory)


def test_a_recorded_end_is_reported_after_a_gap_for_the_lost_output(
    directory: SessionDirectory,
) -> None:
    done = InteractiveCmdDone(
        session_id=directory.session_id,
        end_reason="exited",
        exit_code=0,
        streams=[
            StreamFinal(stream="stdout", next_offset=100, sha256=EMPTY_SHA256),
            StreamFinal(stream="stderr", next_offset=7, sha256=EMPTY_SHA256),
        ],
    )
    directory.write_done(done)
    remains = _claim(directory)
    summary = remains.summary()
    assert summary.state == "done"
    assert [(position.first_offset, position.next_offset) for position in summary.streams] == [
        (100, 100),
        (7, 7),
    ]
    gap, end = remains.closing_messages({"stdout": 40, "stderr": 7})
    assert isinstance(gap, Gap)
    assert (gap.stream, gap.from_offset, gap.to_offset, gap.reason) == ("stdout", 40, 100, "lost")
    assert end == done
    remains.release()


def test_an_end_nobody_recorded_is_a_loss_that_keeps_its_survivors(
    directory: SessionDirectory,
) -> None:
    remains = _claim(directory)
    assert remains.summary().state == "lost"
    assert list(remains.closing_messages({})) == []
    remains.record_loss(["cat[12]"], is_all=True)
    remains.release()
    again = _claim(directory)
    assert again.summary().state == "lost"
    (end,) = again.closing_messages({})
    assert isinstance(end, InteractiveCmdDone)
    assert (end.end_reason, end.survivors) == ("lost", ["cat[12]"])
    again.remove()
    assert not directory.path.exists()
