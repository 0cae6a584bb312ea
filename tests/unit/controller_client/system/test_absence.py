"""A file that cannot be looked at is not one that is absent: here, and in all that asks for files
of the daemon's.
"""

import errno
import logging
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from controller_client.config.daemon import find_control_group
from controller_client.config.errors import ConfigurationError
from controller_client.logs import reader as file_reader
from controller_client.logs.deletion import delete
from controller_client.logs.paths import LogPaths
from controller_client.policy import file as policy_file
from controller_client.policy.host_policy import HostPolicy
from controller_client.policy.input_guard import InputGuard
from controller_client.policy.kill_switch import KillSwitch
from controller_client.protocol.messages import (
    DeleteFile,
    InteractiveCmdDone,
    ReadFile,
    SendInput,
    StartInteractiveCmd,
)
from controller_client.server_link.holders.dead_holder import DeadHolder
from controller_client.server_link.holders.outage import Outage
from controller_client.server_link.host_identity import instance_id
from controller_client.session_files.directory import HolderRecord, create, directory_of
from controller_client.system.absence import is_absent, is_there
from controller_client.system.control_group import SessionGroup
from tests.support.descriptors import spare_descriptors


@pytest.mark.parametrize(
    "code", [errno.EMFILE, errno.ENFILE, errno.ENOMEM, errno.EIO, errno.EACCES]
)
def test_only_what_is_not_there_is_absent(code: int) -> None:
    assert not is_absent(OSError(code, "x"))
    assert is_absent(FileNotFoundError(errno.ENOENT, "x"))
    assert is_absent(NotADirectoryError(errno.ENOTDIR, "x"))


def test_a_link_that_leads_nowhere_is_there(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to("nowhere")
    assert is_there(tmp_path / "link")
    assert not is_there(tmp_path / "other")
    assert not is_there(tmp_path / "link" / "below")


def _failing(code: int) -> Callable[..., os.stat_result]:
    def fails(*_: object, **__: object) -> os.stat_result:
        raise OSError(code, os.strerror(code))

    return fails


@pytest.mark.parametrize("code", [errno.EACCES, errno.ENOMEM, errno.EIO])
def test_who_cannot_look_for_the_kill_switch_is_stopped(
    code: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    policy = HostPolicy(switch=KillSwitch([tmp_path / "stop"]))
    assert policy.stopped is None
    monkeypatch.setattr(os, "lstat", _failing(code))
    assert policy.stopped is not None


@pytest.mark.parametrize("code", [errno.EACCES, errno.ENOMEM, errno.EIO])
def test_a_policy_file_that_cannot_be_looked_for_is_not_left_out(
    code: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "lstat", _failing(code))
    with pytest.raises(ConfigurationError, match="cannot tell whether"):
        policy_file.policy_paths(None, tmp_path)


@pytest.mark.parametrize("spare", range(8))
def test_without_descriptors_nothing_of_a_rotated_log_is_skipped(
    spare: int, tmp_path: Path
) -> None:
    log = tmp_path / "app.log"
    log.write_text("read\n")
    paths = LogPaths([str(tmp_path)])
    seen = file_reader.look(paths, ReadFile(path=str(log), position=0))
    with log.open("a") as file:
        file.write("not read yet\n")
    log.rename(tmp_path / "app.log.1")
    log.write_text("new\n")
    ask = ReadFile(
        path=str(log),
        identity=seen.identity,
        mark=seen.mark,
        position=seen.position + len(seen.data),
    )
    with spare_descriptors(spare):
        found = file_reader.look(paths, ask)
    if found.failure is not None:
        assert (found.failure.code, spare < 8) == ("FILE_READ_ERROR", True)
    else:
        assert (found.data, found.reset, found.gap) == (b"not read yet\n", None, None)


def test_without_descriptors_a_log_is_not_said_to_be_elsewhere(tmp_path: Path) -> None:
    tmp_path.chmod(0o700)
    log = tmp_path / "a.log"
    log.write_text("x")
    status = log.stat()
    ask = DeleteFile(path=str(log), identity=f"{status.st_dev}:{status.st_ino}")
    paths = LogPaths(managed=str(tmp_path))
    with spare_descriptors(0):
        refused = delete(paths, ask)
    assert refused.failure is not None
    assert refused.failure.code == "DELETE_FAILED"
    assert delete(paths, ask).failure is None


def test_an_end_that_cannot_be_read_now_is_not_said_to_be_lost(tmp_path: Path) -> None:
    start = StartInteractiveCmd(seq=1, session_id="a", command="true")
    assert create(tmp_path, start)
    directory = directory_of(tmp_path, "a")
    directory.write_done(InteractiveCmdDone(session_id="a", end_reason="exited", exit_code=3))
    with spare_descriptors(1), pytest.raises(OSError, match="Too many open files"):
        # One for the lock, none for the record of the end.
        DeadHolder.claim(directory)
    found = DeadHolder.claim(directory)
    assert found is not None
    assert found.done is not None
    assert found.done.exit_code == 3
    found.release()


def test_input_whose_rules_cannot_be_read_is_refused_until_they_can(tmp_path: Path) -> None:
    assert create(tmp_path, StartInteractiveCmd(seq=1, session_id="a", command="sh"))
    guard = InputGuard(directory_of(tmp_path, "a"), HostPolicy())
    typed = SendInput(seq=2, session_id="a", input_seq=1, data=b"ls\n")
    with spare_descriptors(0):
        refused = guard.judged(typed, ()).refused
    assert refused is not None
    assert refused.code == "RULES_UNREADABLE"
    assert guard.judged(typed, ()).refused is None


def test_what_a_holder_wrote_down_is_not_said_to_be_missing(tmp_path: Path) -> None:
    assert create(tmp_path, StartInteractiveCmd(seq=1, session_id="a", command="sh"))
    directory = directory_of(tmp_path, "a")
    assert directory.read_record() is None
    record = HolderRecord(boot_id="boot", members=[(1, 2)])
    directory.write_record(record)
    with spare_descriptors(0), pytest.raises(OSError, match="Too many open files"):
        directory.read_record()
    assert directory.read_record() == record


def test_whose_holder_a_process_is_is_not_said_to_be_unknown(tmp_path: Path) -> None:
    assert create(tmp_path, StartInteractiveCmd(seq=1, session_id="a", command="sh"))
    directory = directory_of(tmp_path, "a")
    assert (directory.read_holder(), directory.read_pid()) == (None, None)
    lock = directory.lock()
    assert lock is not None
    directory.sign(lock)
    directory.write_pid(4711)
    for read in (directory.read_holder, directory.read_pid):
        with spare_descriptors(0), pytest.raises(OSError, match="Too many open files"):
            read()
    assert (directory.read_holder(), directory.read_pid()) == (os.getpid(), 4711)
    os.close(lock)


def test_the_members_of_a_group_that_cannot_be_read_are_not_none(tmp_path: Path) -> None:
    group = SessionGroup(tmp_path)
    (tmp_path / "cgroup.procs").write_text("1\n2\n")
    for look in (group.pids, group.open_members):
        with spare_descriptors(0), pytest.raises(OSError, match="Too many open files"):
            look()
    assert group.pids() == [1, 2]


def test_who_cannot_look_for_a_control_group_does_not_go_on_without() -> None:
    with spare_descriptors(0), pytest.raises(ConfigurationError, match="cannot tell whether"):
        find_control_group("auto")
    find_control_group("auto")


def test_who_cannot_read_an_identity_is_not_told_to_remove_it(tmp_path: Path) -> None:
    identity = instance_id(tmp_path)
    with spare_descriptors(0), pytest.raises(ConfigurationError) as refused:
        instance_id(tmp_path)
    assert "cannot be read now: Too many open files" in str(refused.value)
    assert "remove" not in str(refused.value)
    assert instance_id(tmp_path) == identity


def test_a_trouble_of_many_is_one_line(caplog: pytest.LogCaptureFixture) -> None:
    outage = Outage(logging.getLogger("daemon"))
    for number in range(100):
        outage.report("session %d cannot be looked for", number)
    assert [record.getMessage() for record in caplog.records] == [
        "session 0 cannot be looked for (1 times since it was last logged)"
    ]
