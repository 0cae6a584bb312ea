"""A disk that fills is told once, before it is full."""

import os
from pathlib import Path
from types import SimpleNamespace

import pytest

from projects import checks
from projects.storage import room


@pytest.fixture
def disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> SimpleNamespace:
    """A disk whose free blocks of 1 MiB a test sets."""
    found = SimpleNamespace(f_frsize=1024**2, f_bavail=2048)
    monkeypatch.setattr(room, "database_path", lambda: tmp_path / "db.sqlite3")
    monkeypatch.setattr(os, "statvfs", lambda _path: found)
    return found


def test_a_disk_that_fills_is_told_once_each_time(
    disk: SimpleNamespace, caplog: pytest.LogCaptureFixture
) -> None:
    watch = room.Watch()
    for blocks in (2048, 1000, 900, 2048, 10):
        disk.f_bavail = blocks
        watch.look()
    told = [record.getMessage() for record in caplog.records]
    assert ["1000 MiB left" in told[0], "10 MiB left" in told[1]] == [True, True]
    assert len(told) == 2


def test_a_server_on_a_full_disk_starts_with_a_warning(disk: SimpleNamespace) -> None:
    assert checks.check_room() == []
    disk.f_bavail = 1023
    (warning,) = checks.check_room()
    assert warning.id == "holdline.W003"


def test_a_database_elsewhere_has_no_disk_here(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(room, "database_path", lambda: None)
    assert (room.free_bytes(), room.problem()) == (None, "")


def test_a_database_out_of_reach_tells_nothing_of_its_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(room, "database_path", lambda: Path("/" + "x" * 300) / "db.sqlite3")
    assert (room.free_bytes(), room.problem()) == (None, "")
