"""A session whose holder is dead is claimed and reported from its directory."""

import os
from pathlib import Path
from uuid import uuid4

import pytest

from controller_client.protocol.messages import (
    CommandResult,
    Gap,
    InteractiveCmdDone,
    RunCommand,
    StartInteractiveCmd,
    StreamFinal,
)
from controller_client.protocol.values import NOTE_NOTHING_LEFT
from controller_client.server_link.holders.dead_holder import (
    NOTE_HOLDER_DIED,
    DeadHolder,
    remove_unless_held,
)
from controller_client.session_files.directory import SessionDirectory, create, directory_of
from tests.support.descriptors import spare_descriptors
from tests.support.processes import open_descriptors

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


def test_output_that_the_server_never_had_is_lost_from_its_first_byte(
    directory: SessionDirectory,
) -> None:
    streams = [
        StreamFinal(stream="stdout", next_offset=5, sha256=EMPTY_SHA256),
        StreamFinal(stream="stderr", next_offset=0, sha256=EMPTY_SHA256),
    ]
    session_id = directory.session_id
    directory.write_done(
        InteractiveCmdDone(session_id=session_id, end_reason="exited", streams=streams)
    )
    remains = _claim(directory)
    gap, end = remains.closing_messages({})
    assert isinstance(gap, Gap)
    assert (gap.session_id, gap.from_offset, gap.to_offset) == (session_id, 0, 5)
    assert list(remains.closing_messages({"stdout": 5})) == [end]
    remains.release()


@pytest.mark.parametrize(
    ("survivors", "is_all", "notes"),
    [
        ([], True, [NOTE_HOLDER_DIED, NOTE_NOTHING_LEFT]),
        ([], False, [NOTE_HOLDER_DIED]),
        (["cat[12]"], True, [NOTE_HOLDER_DIED]),
    ],
)
def test_nothing_is_left_only_if_every_process_is_known(
    directory: SessionDirectory, survivors: list[str], is_all: bool, notes: list[str]
) -> None:
    remains = _claim(directory)
    remains.record_loss(survivors, is_all=is_all)
    assert remains.done is not None
    assert remains.done.notes == notes
    assert directory.read_done() == remains.done
    remains.release()


def test_the_loss_of_a_one_shot_is_its_result(tmp_path: Path) -> None:
    assert create(tmp_path, RunCommand(seq=1, session_id="one", command="true"))
    remains = _claim(directory_of(tmp_path, "one"))
    remains.record_loss([], is_all=True)
    assert isinstance(remains.done, CommandResult)
    assert not remains.done.timed_out
    remains.release()


def test_a_record_that_cannot_be_read_now_leaves_the_lock_free(
    directory: SessionDirectory,
) -> None:
    directory.write_done(
        InteractiveCmdDone(session_id=directory.session_id, end_reason="exited", streams=[])
    )
    with spare_descriptors(1), pytest.raises(OSError, match="Too many open files"):
        DeadHolder.claim(directory)
    remains = _claim(directory)
    assert remains.summary().state == "done"
    remains.release()


def test_a_session_that_is_forgotten_leaves_no_descriptor(directory: SessionDirectory) -> None:
    before = open_descriptors(os.getpid())
    remains = _claim(directory)
    assert remains.summary().input_seq == 0
    remains.remove()
    assert open_descriptors(os.getpid()) == before


def test_only_a_session_that_nobody_holds_is_removed(directory: SessionDirectory) -> None:
    held = directory.lock()
    assert held is not None
    assert not remove_unless_held(directory)
    os.close(held)
    with spare_descriptors(0):
        assert not remove_unless_held(directory)
    assert directory.path.exists()
    assert remove_unless_held(directory)
    assert not directory.path.exists()
    assert remove_unless_held(directory)
