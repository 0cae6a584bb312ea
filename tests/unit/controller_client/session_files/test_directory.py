"""The files of a session are made once, written whole, and locked by one process."""

import os
import stat
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest

from controller_client.protocol.codec import encode
from controller_client.protocol.messages import InteractiveCmdDone, StartInteractiveCmd, StreamFinal
from controller_client.session_files.directory import all_sessions, create, directory_of

START = StartInteractiveCmd(seq=1, session_id="0b0c", command="cat", env={"A": "b"})
DONE = InteractiveCmdDone(
    session_id="0b0c",
    end_reason="exited",
    exit_code=0,
    streams=[StreamFinal(stream="stdout", next_offset=3, sha256="00")],
)


def test_the_directory_of_a_session_is_made_once(tmp_path: Path) -> None:
    assert create(tmp_path, START) is True
    assert create(tmp_path, START) is False
    directory = directory_of(tmp_path, "0b0c")
    assert (directory.session_id, directory.read_start()) == ("0b0c", START)
    assert [
        stat.S_IMODE(path.stat().st_mode)
        for path in (directory.path, directory.path / "start.json")
    ] == [0o700, 0o600]


@pytest.mark.parametrize("session_id", ["", ".", "..", "../x", "a/b", "a b", "-x", "x" * 65, "a\n"])
def test_an_id_that_is_no_plain_name_never_becomes_a_path(tmp_path: Path, session_id: str) -> None:
    with pytest.raises(ValueError, match="session id"):
        directory_of(tmp_path, session_id)


def test_a_missing_or_torn_file_reads_as_none(tmp_path: Path) -> None:
    directory = directory_of(tmp_path, "0b0c")
    assert (directory.read_start(), directory.read_done(), directory.read_pid()) == (
        None,
        None,
        None,
    )
    directory.path.mkdir(parents=True)
    for name in ("start.json", "done.json", "pid"):
        (directory.path / name).write_text('{"type": "DONE_ACK", ')
    assert (directory.read_start(), directory.read_done(), directory.read_pid()) == (
        None,
        None,
        None,
    )


def test_the_beginning_of_a_file_never_counts_as_the_file(tmp_path: Path) -> None:
    create(tmp_path, START)
    directory = directory_of(tmp_path, "0b0c")
    directory.write_pid(4711)
    for name in ("start.json", "pid"):
        whole = (directory.path / name).read_bytes()
        for length in range(len(whole)):
            (directory.path / name).write_bytes(whole[:length])
            assert (
                directory.read_start() if name == "start.json" else directory.read_pid()
            ) is None


def test_the_end_and_the_pid_come_back_as_they_were_written(tmp_path: Path) -> None:
    create(tmp_path, START)
    directory = directory_of(tmp_path, "0b0c")
    directory.write_done(DONE)
    directory.write_pid(4711)
    assert (directory.read_done(), directory.read_pid()) == (DONE, 4711)
    assert sorted(path.name for path in directory.path.iterdir()) == [
        "done.json",
        "pid",
        "start.json",
    ]


def test_the_lock_tells_whether_a_holder_lives(tmp_path: Path) -> None:
    create(tmp_path, START)
    directory = directory_of(tmp_path, "0b0c")
    assert not directory.is_holder_alive()
    lock = directory.lock()
    assert lock is not None
    assert directory.is_holder_alive()
    assert directory.lock() is None
    os.close(lock)
    assert not directory.is_holder_alive()


def test_sessions_are_listed_and_forgotten(tmp_path: Path) -> None:
    assert all_sessions(tmp_path) == []
    create(tmp_path, START)
    (tmp_path / "sessions" / "no session!").mkdir()
    (listed,) = all_sessions(tmp_path)
    assert listed.session_id == "0b0c"
    listed.remove()
    listed.remove()
    assert all_sessions(tmp_path) == []
    assert listed.lock() is None
    assert not listed.is_holder_alive()


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs a full device")
def test_a_directory_that_cannot_be_completed_is_taken_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = os.open

    def full(path: object, flags: int, *rest: object, **more: object) -> int:
        return real(
            "/dev/full" if str(path).endswith("start.json") else path,
            flags & ~os.O_NOFOLLOW & ~os.O_EXCL,
            *rest,
            **more,
        )

    monkeypatch.setattr(os, "open", full)
    with pytest.raises(OSError, match="No space"):
        create(tmp_path, START)
    monkeypatch.undo()
    assert create(tmp_path, START) is True


def _put_fifo(path: Path) -> None:
    os.mkfifo(path)


def _put_link_to_a_device(path: Path) -> None:
    path.symlink_to("/dev/zero")


def _put_a_huge_file(path: Path) -> None:
    with path.open("wb") as file:
        file.truncate(1 << 40)


def _put(content: bytes) -> Callable[[Path], object]:
    return lambda path: path.write_bytes(content)


NAMES = ("start.json", "done.json", "pid", "record.json", "overdue", "holder.lock")
"""Every file of a session that is read."""
CONTENTS = {
    "larger_than_a_frame": bytes(300_000),
    "no_text": b'{"boot_id":"\xff","type":"\xff"}',
    "no_text_in_a_line": b"\xff\n",
    "nested_for_ever": b"[" * 200_000,
    "no_process": b"9" * 4000 + b"\n",
    "every_process": b"-1\n",
    "no_process_on_record": b'{"boot_id":"b","members":[[%s,1]]}' % (b"9" * 400),
}
"""What a program can write into them."""


@pytest.mark.parametrize(
    "put",
    [
        _put_fifo,
        _put_link_to_a_device,
        _put_a_huge_file,
        Path.mkdir,
        *(pytest.param(_put(content), id=name) for name, content in CONTENTS.items()),
    ],
)
def test_what_a_program_put_in_place_of_a_file_holds_nobody_up(
    tmp_path: Path, put: Callable[[Path], object]
) -> None:
    create(tmp_path, START)
    directory = directory_of(tmp_path, "0b0c")
    (directory.path / "start.json").unlink()
    for name in NAMES:
        put(directory.path / name)
    assert [
        directory.read_start(),
        directory.read_done(),
        directory.read_pid(),
        directory.read_record(),
        directory.read_overdue(),
        directory.read_holder(),
    ] == [None] * len(NAMES)


@pytest.mark.parametrize(
    "planted",
    [
        msgspec.structs.replace(DONE, session_id="another"),
        msgspec.structs.replace(DONE, survivors=["x" * 15] * 12_000),
    ],
    ids=["of_another_session", "too_long_to_be_told"],
)
def test_an_end_that_no_holder_recorded_is_none(
    tmp_path: Path, planted: InteractiveCmdDone
) -> None:
    create(tmp_path, START)
    directory = directory_of(tmp_path, "0b0c")
    directory.write_done(planted)
    assert directory.read_done() is None
    other = msgspec.structs.replace(START, session_id="another")
    (directory.path / "start.json").write_bytes(encode(other))
    assert directory.read_start() is None


def test_a_fifo_in_the_place_of_the_end_is_replaced_by_it(tmp_path: Path) -> None:
    create(tmp_path, START)
    directory = directory_of(tmp_path, "0b0c")
    for name in ("done.json", "done.json.new"):
        _put_fifo(directory.path / name)
    directory.write_done(DONE)
    assert directory.read_done() == DONE
