"""A lock that a program has spoiled is not taken for one that cannot be looked at now."""

import os
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from types import SimpleNamespace

import pytest

from controller_client.protocol.messages import StartInteractiveCmd
from controller_client.server_link.holders.fork_server import Spawner
from controller_client.server_link.holders.known_holder import KnownHolder
from controller_client.session_files.directory import SessionDirectory, create, directory_of
from tests.support.accounts import requires_root
from tests.support.descriptors import spare_descriptors

NOBODY = 65534


@pytest.fixture
def state_dir() -> Iterator[Path]:
    """A state directory of an ordinary user, as whom the test goes on: modes bind no root."""
    requires_root()
    with TemporaryDirectory() as made:
        os.chown(made, NOBODY, NOBODY)
        os.seteuid(NOBODY)
        try:
            yield Path(made)
        finally:
            os.seteuid(0)


@pytest.fixture
def directory(state_dir: Path) -> SessionDirectory:
    return _session(state_dir, "a")


def _session(state_dir: Path, session_id: str) -> SessionDirectory:
    assert create(state_dir, StartInteractiveCmd(seq=1, session_id=session_id, command="true"))
    directory = directory_of(state_dir, session_id)
    lock = directory.lock()
    assert lock is not None
    directory.sign(lock)
    os.close(lock)
    return directory


@pytest.mark.parametrize("closed", ["", "holder.lock", "start.json"])
def test_a_session_that_is_closed_to_its_user_is_claimed_or_gone(
    directory: SessionDirectory, closed: str
) -> None:
    known = KnownHolder(SimpleNamespace(directory=directory))
    (directory.path / closed).chmod(0)
    if closed == "start.json":
        dead = known.claim()
        assert dead is not None
        dead.record_loss([], is_all=True)
        dead.release()
    else:
        assert not known.is_directory_gone()
        with pytest.raises(FileNotFoundError):
            known.claim()
        assert known.is_directory_gone()
    directory.remove()
    assert not directory.path.exists()


def test_a_shortage_says_nothing_about_a_lock(directory: SessionDirectory) -> None:
    known = KnownHolder(SimpleNamespace(directory=directory))
    with spare_descriptors(0), pytest.raises(OSError, match="Too many open files"):
        known.claim()
    assert not known.is_directory_gone()


def test_a_directory_in_a_directory_s_place_is_removed(directory: SessionDirectory) -> None:
    closed = directory.path / "holder.lock"
    closed.unlink()
    (closed / "below").mkdir(parents=True)
    (closed / "below").chmod(0)
    closed.chmod(0)
    directory.remove()
    assert not directory.path.exists()
    directory.path.write_text("a file")
    assert KnownHolder(SimpleNamespace(directory=directory)).is_directory_gone()
    directory.remove()
    assert not directory.path.exists()


@pytest.mark.parametrize("closed", ["", "holder.lock"])
def test_a_closed_session_hides_no_other_session_s_holder(state_dir: Path, closed: str) -> None:
    (_session(state_dir, "a").path / closed).chmod(0)
    _session(state_dir, "b")
    spawner = Spawner.__new__(Spawner)
    spawner._state_dir = state_dir
    assert spawner._session_held_by(os.getpid()) == "b"
    with spare_descriptors(0), pytest.raises(OSError, match="Too many open files"):
        spawner._session_held_by(os.getpid())
