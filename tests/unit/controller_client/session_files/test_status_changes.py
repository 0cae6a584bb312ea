"""The daemon's status file is written when something changes, and never through a link."""

import os
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import msgspec
import pytest

from controller_client.server_link.host_identity import lock_state_dir
from controller_client.session_files import daemon_status
from controller_client.session_files.daemon_status import (
    StatusFile,
    is_daemon_running,
    read_status,
)
from controller_client.system.files.plain_file import NotPlainFile


@pytest.fixture
def running(tmp_path: Path) -> Iterator[Path]:
    """The state directory of a daemon that runs: this process."""
    lock = lock_state_dir(tmp_path)
    yield tmp_path
    os.close(lock)


def test_a_state_that_is_told_again_is_not_written_again(running: Path) -> None:
    file = StatusFile(running, version="1", server="wss://s/")
    file.tell("refused", "why")
    (running / "status.json").unlink()
    file.tell("refused", "why")
    assert read_status(running) is None
    file.tell("refused", "another")
    assert read_status(running) is not None


def test_a_new_state_has_its_own_time(running: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    moment = 100.0
    monkeypatch.setattr(daemon_status, "time", SimpleNamespace(time=lambda: moment))
    file = StatusFile(running, version="1", server="wss://s/")
    moment = 200.0
    file.tell("connected")
    status = read_status(running)
    assert status is not None
    assert (status.state, status.since, status.started) == ("connected", 200.0, 100.0)


def test_the_status_of_a_daemon_that_ended_is_removed(running: Path) -> None:
    file = StatusFile(running, version="1", server="wss://s/")
    file.remove()
    file.remove()
    assert not (running / "status.json").exists()


def test_a_draft_that_is_a_link_is_not_written_through(running: Path) -> None:
    victim = running / "victim"
    victim.write_text("precious")
    (running / "status.new").symlink_to(victim)
    StatusFile(running, version="1", server="wss://s/").tell("connected")
    assert victim.read_text() == "precious"


def test_a_longer_draft_of_a_killed_daemon_leaves_nothing(running: Path) -> None:
    (running / "status.new").write_bytes(b"x" * 10_000)
    StatusFile(running, version="1", server="wss://s/")
    status = read_status(running)
    assert status is not None
    assert (running / "status.json").read_bytes() == msgspec.json.encode(status)


def test_a_state_directory_that_is_gone_ends_no_daemon(tmp_path: Path) -> None:
    file = StatusFile(tmp_path / "gone", version="1", server="wss://s/")
    file.tell("connected")
    file.remove()
    assert not (tmp_path / "gone").exists()


def test_a_state_directory_without_a_lock_has_no_daemon(tmp_path: Path) -> None:
    assert not is_daemon_running(tmp_path)
    os.close(lock_state_dir(tmp_path))
    assert not is_daemon_running(tmp_path)


def test_a_look_at_the_lock_leaves_it_free_and_follows_no_link(tmp_path: Path) -> None:
    os.close(lock_state_dir(tmp_path))
    before = len(list(Path("/proc/self/fd").iterdir()))
    for _ in range(3):
        assert not is_daemon_running(tmp_path)
    assert len(list(Path("/proc/self/fd").iterdir())) == before
    (tmp_path / "daemon.lock").rename(tmp_path / "kept")
    (tmp_path / "daemon.lock").symlink_to(tmp_path / "kept")
    with pytest.raises(NotPlainFile, match="not a plain file"):
        is_daemon_running(tmp_path)
