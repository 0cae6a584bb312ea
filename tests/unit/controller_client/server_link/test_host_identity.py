"""The daemon's identity survives restarts, and its state directory has one daemon."""

import errno
import os
import shutil
import stat
from pathlib import Path
from types import SimpleNamespace
from uuid import UUID

import pytest

from controller_client.config.errors import AlreadyRunning, ConfigurationError
from controller_client.server_link import host_identity
from controller_client.server_link.host_identity import instance_id, lock_id, lock_state_dir
from tests.support.descriptors import spare_descriptors
from tests.support.processes import open_descriptors


def test_the_instance_id_of_a_state_directory_is_kept(tmp_path: Path) -> None:
    first = instance_id(tmp_path)
    assert UUID(first)
    assert instance_id(tmp_path) == first
    other = tmp_path / "other"
    other.mkdir()
    assert instance_id(other) != first


def test_an_instance_id_is_on_the_disk_before_it_is_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    synced, sync = [], os.fsync

    def noted(descriptor: int) -> None:
        sync(descriptor)
        is_directory = stat.S_ISDIR(os.fstat(descriptor).st_mode)
        synced.append((is_directory, os.fstat(descriptor).st_size > 0, _names(tmp_path)))

    monkeypatch.setattr(os, "fsync", noted)
    instance_id(tmp_path)
    assert synced == [(False, True, ["instance_id.new"]), (True, True, ["instance_id"])]


def _names(directory: Path) -> list[str]:
    return [path.name for path in directory.iterdir()]


def test_a_damaged_instance_id_is_refused_rather_than_replaced(tmp_path: Path) -> None:
    (tmp_path / "instance_id").write_text("not a uuid")
    with pytest.raises(ConfigurationError, match="instance_id"):
        instance_id(tmp_path)


def test_a_state_directory_has_one_daemon_at_a_time(tmp_path: Path) -> None:
    held = lock_state_dir(tmp_path)
    with pytest.raises(AlreadyRunning):
        lock_state_dir(tmp_path)
    os.close(held)
    os.close(lock_state_dir(tmp_path))


def test_a_disk_without_locks_is_no_second_daemon(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(_descriptor: int, _operation: int) -> None:
        raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))

    monkeypatch.setattr(host_identity.fcntl, "flock", refuse)
    with pytest.raises(ConfigurationError, match="No locks available"):
        lock_state_dir(tmp_path)


def test_the_lock_of_a_state_directory_has_a_name_that_no_copy_has(tmp_path: Path) -> None:
    first, copy = tmp_path / "first", tmp_path / "copy"
    first.mkdir()
    names = []
    for directory in (first, first, copy):
        held = lock_state_dir(directory)
        names.append(lock_id(held))
        os.close(held)
        shutil.copytree(first, copy, dirs_exist_ok=True)
    assert names[0] == names[1] != names[2]


def test_a_lock_that_somebody_has_for_a_moment_is_waited_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    looking = [lock_state_dir(tmp_path)]

    class Pause:
        """The looker lets go meanwhile."""

        def wait(self, _seconds: float) -> None:
            os.close(looking.pop())

    monkeypatch.setattr(host_identity, "threading", SimpleNamespace(Event=Pause))
    held = lock_state_dir(tmp_path)
    assert looking == []
    os.close(held)


def test_a_lock_is_closed_to_others_and_follows_no_link(tmp_path: Path) -> None:
    os.close(lock_state_dir(tmp_path))
    lock = tmp_path / "daemon.lock"
    assert stat.S_IMODE(lock.stat().st_mode) == 0o600
    lock.rename(tmp_path / "kept")
    lock.symlink_to(tmp_path / "kept")
    with pytest.raises(ConfigurationError, match="cannot lock the state directory"):
        lock_state_dir(tmp_path)
    with pytest.raises(ConfigurationError, match="cannot lock the state directory"):
        lock_state_dir(tmp_path / "missing")


def test_a_daemon_that_is_turned_away_leaves_no_descriptor(tmp_path: Path) -> None:
    held = lock_state_dir(tmp_path)
    before = open_descriptors(os.getpid())
    with pytest.raises(AlreadyRunning):
        lock_state_dir(tmp_path)
    assert open_descriptors(os.getpid()) == before
    os.close(held)


def test_an_instance_id_that_cannot_be_read_now_is_not_called_damaged(tmp_path: Path) -> None:
    first = instance_id(tmp_path)
    with (
        spare_descriptors(0),
        pytest.raises(ConfigurationError, match=r"cannot be read now: Too many open files$"),
    ):
        instance_id(tmp_path)
    assert instance_id(tmp_path) == first


def test_an_instance_id_that_cannot_be_written_is_told(tmp_path: Path) -> None:
    (tmp_path / "instance_id.new").mkdir()
    with pytest.raises(ConfigurationError, match="cannot write"):
        instance_id(tmp_path)
