"""What a program planted in the state directory holds no daemon up and leads no write elsewhere."""

import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from controller_client.administration.unit import read_unit
from controller_client.config.errors import ConfigurationError
from controller_client.policy import kill_switch
from controller_client.policy.kill_switch import KillSwitch, kept_stop
from controller_client.server_link.host_identity import instance_id, lock_state_dir
from controller_client.session_files.daemon_status import (
    LOCK_NAME,
    StatusFile,
    is_daemon_running,
    read_status,
)
from controller_client.session_files.directory import LOG_NAME
from controller_client.system.files.plain_file import NotPlainFile, open_private

Plant = Callable[[Path], None]


@pytest.fixture
def victim(tmp_path: Path) -> Path:
    """A file of the user, outside of the state directory."""
    path = tmp_path / "victim"
    path.write_text("precious")
    return path


@pytest.fixture
def state_dir(tmp_path: Path) -> Path:
    path = tmp_path / "state"
    path.mkdir()
    return path


@pytest.fixture(params=["fifo", "link", "dangling link"])
def plant(request: pytest.FixtureRequest, victim: Path) -> Plant:
    """Puts something else in the place of a file."""
    if request.param == "fifo":
        return os.mkfifo
    target = victim if request.param == "link" else victim.with_name("nowhere")
    return lambda path: path.symlink_to(target)


@pytest.fixture(autouse=True)
def _untouched(victim: Path) -> Iterator[None]:
    yield
    assert victim.read_text() == "precious"
    assert not victim.with_name("nowhere").exists()


def test_a_status_is_written_anew(state_dir: Path, plant: Plant) -> None:
    lock = lock_state_dir(state_dir)
    file = StatusFile(state_dir, version="1", server="wss://s/")
    plant(state_dir / "status.new")
    file.tell("unreachable", "no route")
    told = read_status(state_dir)
    assert told is not None
    assert told.why == "no route"
    os.close(lock)


def test_an_identity_is_written_anew(state_dir: Path, plant: Plant) -> None:
    plant(state_dir / "instance_id.new")
    made = instance_id(state_dir)
    assert (state_dir / "instance_id").read_text() == f"{made}\n"
    assert not (state_dir / "instance_id").is_symlink()


def test_a_directory_in_the_place_of_an_identity_is_named(state_dir: Path) -> None:
    (state_dir / "instance_id.new").mkdir()
    with pytest.raises(ConfigurationError, match=r"cannot write .*instance_id\.new: "):
        instance_id(state_dir)


def test_nothing_but_a_file_is_a_lock(state_dir: Path, plant: Plant) -> None:
    plant(state_dir / LOCK_NAME)
    with pytest.raises(ConfigurationError, match="cannot lock the state directory"):
        lock_state_dir(state_dir)
    with pytest.raises(NotPlainFile):
        is_daemon_running(state_dir)


def test_a_stop_is_kept_whatever_has_its_name(
    state_dir: Path, plant: Plant, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kill_switch, "is_writable", lambda _: True)
    switch = KillSwitch([state_dir / "stop"], kept_stop(state_dir))
    plant(kept_stop(state_dir))
    (state_dir / "stop").touch()
    assert switch.is_on
    (state_dir / "stop").unlink()
    assert switch.is_on
    assert KillSwitch([state_dir / "stop"], kept_stop(state_dir)).is_on


def test_a_log_of_a_holder_is_a_plain_file(state_dir: Path, plant: Plant) -> None:
    log = state_dir / LOG_NAME
    plant(log)
    with pytest.raises(NotPlainFile):
        open_private(log, os.O_WRONLY | os.O_APPEND | os.O_CREAT)


def test_a_fifo_with_a_reader_is_no_log_either(state_dir: Path) -> None:
    log = state_dir / LOG_NAME
    os.mkfifo(log)
    reader = os.open(log, os.O_RDONLY | os.O_NONBLOCK)
    with pytest.raises(NotPlainFile):
        open_private(log, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    assert os.read(reader, 100) == b""
    os.close(reader)


def test_a_fifo_is_no_unit(state_dir: Path) -> None:
    os.mkfifo(state_dir / "holdline.service")
    with pytest.raises(NotPlainFile):
        read_unit(state_dir / "holdline.service")
