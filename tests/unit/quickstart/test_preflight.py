"""The obstacles that the quickstart names before it makes anything."""

import errno
import fcntl
import os
from io import StringIO
from pathlib import Path

import pytest

from quickstart import browser_files, environment, preflight
from quickstart.console import Console
from quickstart.errors import AlreadyRunning, OtherDatabase, OtherServer, UnusableLock
from quickstart.options import parse


def test_a_database_of_something_else_is_left_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    options = parse(["--data-dir", str(tmp_path / "data")], {})
    monkeypatch.setenv("DATABASE_URL", "postgres://ada:word@127.0.0.1/shop")
    with pytest.raises(OtherDatabase) as refused:
        preflight.check(options)
    assert "word" not in str(refused.value)
    assert not options.data_dir.exists()
    monkeypatch.setenv("DATABASE_URL", "")
    preflight.check(options)


def test_the_data_directory_of_another_server_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "db.sqlite3").touch()
    options = parse([], {"HOLDLINE_DATA_DIR": str(tmp_path)})
    with pytest.raises(OtherServer, match=f"HOLDLINE_DATA_DIR names {tmp_path}"):
        preflight.check(options)
    assert [path.name for path in tmp_path.iterdir()] == ["db.sqlite3"]
    preflight.check(parse(["--data-dir", str(tmp_path)], {}))
    # The quickstart has used it now, so it is its own.
    preflight.check(options)


@pytest.fixture
def _without_locks(monkeypatch: pytest.MonkeyPatch) -> None:
    """A file system that has no locks."""

    def refuse(*_: object) -> None:
        raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))

    monkeypatch.setattr(fcntl, "flock", refuse)


@pytest.mark.usefixtures("_without_locks")
def test_a_directory_without_locks_is_not_one_in_use(tmp_path: Path) -> None:
    with pytest.raises(UnusableLock) as refused:
        preflight.claim(tmp_path)
    assert str(refused.value).startswith(f"cannot lock {tmp_path}/quickstart.lock: No locks")
    assert "--data-dir" in refused.value.hint


@pytest.mark.usefixtures("_without_locks")
def test_a_checkout_without_locks_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "requirements.txt").touch()
    monkeypatch.setattr(environment, "ROOT", tmp_path)
    monkeypatch.setattr(environment, "_is_in_place", lambda: False)
    with pytest.raises(UnusableLock, match=f"cannot lock {tmp_path}/requirements.txt"):
        environment.ensure("requirements.txt", Console(StringIO()))


@pytest.mark.usefixtures("_without_locks")
def test_files_of_the_pages_that_cannot_be_locked_are_one_sentence(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert browser_files.main() == 1
    assert "error: cannot lock " in capsys.readouterr().err


def test_files_of_the_pages_that_cannot_be_written_are_one_sentence(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "place").touch()
    monkeypatch.setattr(browser_files, "_PLACE", tmp_path / "place")
    monkeypatch.setattr(browser_files, "_fetch", lambda *_: None)
    assert browser_files.main() == 1
    assert f"error: {tmp_path}/place/lock.sha256: Not a directory" in capsys.readouterr().err


def test_a_directory_in_use_is_told_apart(tmp_path: Path) -> None:
    with preflight.claim(tmp_path), pytest.raises(AlreadyRunning):
        preflight.claim(tmp_path)
    preflight.claim(tmp_path).close()
