"""The reason why a restore into PostgreSQL fails is that of the program that met it."""

import os
from pathlib import Path

import pytest

from backup import postgresql
from backup.errors import BackupError

pytestmark = pytest.mark.django_db


def _program(directory: Path, name: str, script: str) -> None:
    path = directory / name
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)


@pytest.fixture
def programs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A directory whose programs stand for those of PostgreSQL."""
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    return tmp_path


def test_the_reason_is_that_of_the_database_and_not_of_the_pipe(programs: Path) -> None:
    _program(
        programs, "psql", "read first; echo 'ERROR:  permission denied for schema' >&2; exit 3"
    )
    _program(programs, "pg_restore", "head -c 1000000 /dev/zero || exit 1")
    with pytest.raises(BackupError, match="permission denied for schema"):
        postgresql._load(programs / "dump", "public")


def test_a_dump_that_cannot_be_read_is_the_reason(programs: Path) -> None:
    _program(programs, "psql", "cat >/dev/null")
    _program(programs, "pg_restore", "echo 'pg_restore: error: not an archive' >&2; exit 1")
    with pytest.raises(BackupError, match="not an archive"):
        postgresql._load(programs / "dump", "public")
