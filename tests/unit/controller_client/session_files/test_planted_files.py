"""What a program planted among the files of its session leads no write or lock elsewhere."""

import errno
import os
import stat
from pathlib import Path

import pytest

from controller_client.protocol.limits import MAX_FRAME_BYTES
from controller_client.protocol.messages import InteractiveCmdDone, StartInteractiveCmd
from controller_client.session_files import directory as module
from controller_client.session_files.directory import (
    HolderRecord,
    SessionDirectory,
    all_sessions,
    create,
    directory_of,
    is_current_removed,
)

START = StartInteractiveCmd(seq=1, session_id="0b0c", command="cat")
DONE = InteractiveCmdDone(session_id="0b0c", end_reason="exited", exit_code=0, streams=[])
RECORD = HolderRecord(boot_id="b", members=[(4711, 12)], ends_at=3.5, memory_bytes=6, descriptors=7)


@pytest.fixture
def session(tmp_path: Path) -> SessionDirectory:
    assert create(tmp_path / "state", START)
    return directory_of(tmp_path / "state", "0b0c")


@pytest.fixture
def victim(tmp_path: Path) -> Path:
    """A file of the user, outside of the session."""
    path = tmp_path / "victim"
    path.write_text("precious")
    return path


def _descriptors() -> list[str]:
    return sorted(path.name for path in Path("/proc/self/fd").iterdir())


@pytest.mark.parametrize("name", ["pid", "done.json.new", "record.json.new", "overdue.new"])
def test_a_link_in_the_place_of_a_file_is_replaced_not_followed(
    session: SessionDirectory, victim: Path, name: str
) -> None:
    (session.path / name).symlink_to(victim)
    session.write_pid(4711)
    session.write_done(DONE)
    session.write_record(RECORD)
    session.write_overdue("timed_out")
    assert victim.read_text() == "precious"
    assert (session.read_pid(), session.read_done()) == (4711, DONE)
    assert (session.read_record(), session.read_overdue()) == (RECORD, "timed_out")


def test_every_file_is_closed_to_other_users(session: SessionDirectory) -> None:
    session.write_pid(4711)
    session.write_pid(4712)
    session.write_done(DONE)
    session.write_record(RECORD)
    session.write_overdue("terminated")
    lock = session.lock()
    assert lock is not None
    os.close(lock)
    modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in session.path.iterdir()}
    assert set(modes.values()) == {0o600}, modes
    assert stat.S_IMODE(session.path.parent.stat().st_mode) == 0o700


def test_a_file_behind_a_link_is_not_read(session: SessionDirectory) -> None:
    session.write_pid(4711)
    session.write_record(RECORD)
    for name in ("pid", "record.json"):
        kept = session.path / f"{name}.kept"
        (session.path / name).rename(kept)
        (session.path / name).symlink_to(kept)
    assert (session.read_pid(), session.read_record()) == (None, None)


def test_a_link_in_the_place_of_the_lock_is_no_lock(
    session: SessionDirectory, victim: Path
) -> None:
    (session.path / "holder.lock").symlink_to(victim)
    with pytest.raises(OSError, match="symbolic links"):
        session.lock()


def test_a_directory_in_the_place_of_the_lock_is_no_living_holder(
    session: SessionDirectory,
) -> None:
    (session.path / "holder.lock").mkdir()
    with pytest.raises(IsADirectoryError):
        session.is_holder_alive()


def test_a_lock_that_the_system_cannot_give_is_no_holder(
    session: SessionDirectory, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(_descriptor: int, _operation: int) -> None:
        raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))

    monkeypatch.setattr(module.fcntl, "flock", refuse)
    before = _descriptors()
    with pytest.raises(OSError, match="No locks"):
        session.is_holder_alive()
    assert _descriptors() == before


def test_a_holder_signs_over_what_a_longer_number_left(session: SessionDirectory) -> None:
    (session.path / "holder.lock").write_text("99999999999999\n")
    lock = session.lock()
    assert lock is not None
    session.sign(lock)
    assert session.read_holder() == os.getpid()
    os.close(lock)


@pytest.mark.parametrize("content", ["", "terminated\n", "exited", "TERMINATED"])
def test_only_the_daemons_own_words_say_why_a_session_is_overdue(
    session: SessionDirectory, content: str
) -> None:
    (session.path / "overdue").write_text(content)
    assert session.read_overdue() is None


@pytest.mark.parametrize("members", ["[[0,1]]", "[[1,-1]]", f"[{','.join(['[1,1]'] * 4097)}]"])
def test_a_record_that_no_holder_writes_is_none(session: SessionDirectory, members: str) -> None:
    (session.path / "record.json").write_text(f'{{"boot_id":"b","members":{members}}}')
    assert session.read_record() is None


def test_the_record_of_an_older_holder_is_read(session: SessionDirectory) -> None:
    (session.path / "record.json").write_text('{"boot_id":"b","members":[[1,0]]}')
    assert session.read_record() == HolderRecord(boot_id="b", members=[(1, 0)])


def test_an_end_that_fills_half_a_frame_is_told_and_one_byte_more_is_not(
    session: SessionDirectory,
) -> None:
    def survivors(length: int) -> InteractiveCmdDone:
        return InteractiveCmdDone(
            session_id="0b0c", end_reason="exited", streams=[], survivors=["x" * length]
        )

    session.write_done(survivors(1))
    length = MAX_FRAME_BYTES // 2 - (session.path / "done.json").stat().st_size + 1
    session.write_done(survivors(length))
    assert session.read_done() is not None
    session.write_done(survivors(length + 1))
    assert session.read_done() is None


def test_the_end_survives_a_crash_of_the_host(
    session: SessionDirectory, monkeypatch: pytest.MonkeyPatch
) -> None:
    synced: list[tuple[bool, bool]] = []

    def noted(descriptor: int, sync: object = os.fsync) -> None:
        assert callable(sync)
        sync(descriptor)
        is_directory = stat.S_ISDIR(os.fstat(descriptor).st_mode)
        synced.append((is_directory, (session.path / "done.json").exists()))

    monkeypatch.setattr(os, "fsync", noted)
    session.write_done(DONE)
    assert synced == [(False, False), (True, True)], "the content first, then the name"


def test_nobody_listens_in_a_session_without_a_holder(session: SessionDirectory) -> None:
    before = _descriptors()
    with pytest.raises(FileNotFoundError):
        session.connect()
    assert _descriptors() == before


def test_a_link_in_the_place_of_a_session_leads_to_no_socket(
    session: SessionDirectory, tmp_path: Path
) -> None:
    elsewhere = tmp_path / "elsewhere"
    session.path.rename(elsewhere)
    session.path.symlink_to(elsewhere)
    with pytest.raises(NotADirectoryError), session.socket_address():
        pass


def test_only_directories_are_sessions_and_they_are_listed_by_name(tmp_path: Path) -> None:
    for name in ("c", "a", "b", "d-"):
        (tmp_path / "sessions" / name).mkdir(parents=True)
    (tmp_path / "sessions" / "e").touch()
    assert [session.session_id for session in all_sessions(tmp_path)] == ["a", "b", "c", "d-"]


def test_what_took_the_place_of_a_session_is_removed(session: SessionDirectory) -> None:
    session.remove()
    session.path.write_text("planted")
    session.remove()
    assert not session.path.exists()


def test_a_holder_sees_that_its_directory_was_removed(
    session: SessionDirectory, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(session.path)
    assert not is_current_removed()
    session.remove()
    assert is_current_removed()
