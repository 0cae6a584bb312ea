"""A restore that is killed between any two of its steps, on SQLite, and then repeated."""

import os
import shutil
import signal
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path
from typing import Final, NamedTuple

import pytest
from cryptography.fernet import Fernet

from projects.management.refusals import EXIT_REFUSED
from tests.support.stack import PROJECT_ROOT

pytestmark = [pytest.mark.fault, pytest.mark.sqlite]

_KEYS: Final = ("encryption_key", "secret_key")
# Runs manage.py, and dies before the given one of the renames that a restore makes.
_DYING: Final = """
import os, pathlib, signal, sys
left, rename = int(sys.argv.pop(1)), pathlib.Path.replace
def replace(self, target):
    global left
    left -= 1
    if left == 0:
        os.kill(os.getpid(), signal.SIGKILL)
    return rename(self, target)
pathlib.Path.replace = replace
from django.core.management import execute_from_command_line
execute_from_command_line(["manage.py", *sys.argv[1:]])
"""


def _run(data_dir: Path, *words: str, dies_at: int = 0) -> "subprocess.CompletedProcess[str]":
    environment = {key: value for key, value in os.environ.items() if key != "DATABASE_URL"}
    environment |= {
        "HOLDLINE_DATA_DIR": str(data_dir),
        "DJANGO_SETTINGS_MODULE": "config.settings.base",
    }
    return subprocess.run(
        [sys.executable, "-c", _DYING, str(dies_at), *words],
        env=environment,
        cwd=PROJECT_ROOT,
        capture_output=True,
        text=True,
        check=False,
    )


def _execute(data_dir: Path, statement: str) -> list[str]:
    with closing(sqlite3.connect(data_dir / "db.sqlite3")) as database, database:
        return [text for (text,) in database.execute(statement)]


def _mark(data_dir: Path) -> list[str]:
    return _execute(data_dir, "SELECT name FROM mark")


def _keys(data_dir: Path) -> list[str]:
    return [(data_dir / name).read_text() for name in _KEYS]


class _Server(NamedTuple):
    data_dir: Path
    backup: Path


@pytest.fixture(scope="module")
def old(tmp_path_factory: pytest.TempPathFactory) -> _Server:
    """A server that was backed up."""
    root = tmp_path_factory.mktemp("old")
    data_dir = root / "data"
    data_dir.mkdir(mode=0o700)
    for words in (("migrate", "--verbosity", "0"), ("backup", str(root / "backups"))):
        done = _run(data_dir, *words)
        assert done.returncode == 0, done.stderr
        if words[0] == "migrate":
            _execute(data_dir, "CREATE TABLE mark AS SELECT 'kept' AS name")
    (backup,) = (root / "backups").iterdir()
    return _Server(data_dir, backup)


def test_a_restore_killed_at_a_step_is_repeated_or_not_served(old: _Server, tmp_path: Path) -> None:
    new = tmp_path / "new"
    shutil.copytree(old.data_dir, new)
    _execute(new, "UPDATE mark SET name = 'replaced'")
    (new / "encryption_key").write_bytes(Fernet.generate_key())
    (new / "secret_key").write_text("x" * 64)
    own, restore = _keys(new), ("restore", str(old.backup), "--replace")
    assert _run(new, *restore, dies_at=1).returncode == -signal.SIGKILL
    assert (_mark(new), _keys(new)) == (["replaced"], own)
    # Then the database is there. Of each key, the earlier one is put beside it, then replaced.
    for step in (3, 5):
        assert _run(new, *restore, dies_at=step).returncode == -signal.SIGKILL
        assert _mark(new) == ["kept"]
        assert "holdline.E004" in _run(new, "check").stderr
    restored = _run(new, "restore", str(old.backup))
    assert restored.returncode == 0, restored.stderr
    assert (_mark(new), _keys(new)) == (["kept"], _keys(old.data_dir))
    assert (new / "encryption_key.before-restore").read_text() == own[0]
    assert not list(new.glob(".backup-*"))
    assert _run(new, "check").returncode == 0


def test_a_damaged_database_and_a_log_that_was_left_are_no_obstacle(
    old: _Server, tmp_path: Path
) -> None:
    damaged = tmp_path / "db.sqlite3"
    damaged.write_bytes(b"no database" * 1000)
    refused = _run(tmp_path, "restore", str(old.backup), "--replace")
    assert refused.returncode == EXIT_REFUSED
    assert "move it away" in refused.stderr
    assert "Traceback" not in refused.stderr
    damaged.rename(tmp_path / "damaged")
    damaged.with_name("db.sqlite3-wal").write_bytes(b"a log of before")
    restored = _run(tmp_path, "restore", str(old.backup))
    assert restored.returncode == 0, restored.stderr
    assert _mark(tmp_path) == ["kept"]
