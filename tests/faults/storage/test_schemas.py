"""Backup and restore keep to the schema of this server: the database may serve others, too."""

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

from backup.errors import SERVED
from backup.postgresql import END
from tests.support.databases.postgres import Postgres, provisioned_postgres
from tests.support.stack import PROJECT_ROOT

pytestmark = pytest.mark.fault

_DATABASE = "shared"
_OURS = "?options=-c%20search_path%3D%22Our%2Down%22"


@pytest.fixture(scope="module")
def postgres() -> Iterator[Postgres]:
    """A database with a schema of ours, and with the table of somebody else in ``public``.

    An extension has its functions in our schema.
    """
    server, _ = provisioned_postgres()
    server.start()
    server.execute(f"CREATE DATABASE {_DATABASE}")
    for statement in (
        'CREATE SCHEMA "Our-own"',
        'CREATE EXTENSION citext SCHEMA "Our-own"',
        "CREATE TABLE public.somebody (said text)",
        "INSERT INTO public.somebody VALUES ('mine')",
    ):
        server.execute(statement, _DATABASE)
    yield server
    server.remove()


def _manage(
    postgres: Postgres, data_dir: Path, query: str, *words: str
) -> "subprocess.CompletedProcess[str]":
    url = postgres.url(_DATABASE) + query
    return subprocess.run(
        [sys.executable, "manage.py", *words],
        cwd=PROJECT_ROOT,
        env={"PATH": "/usr/bin:/bin", "DATABASE_URL": url, "HOLDLINE_DATA_DIR": str(data_dir)},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.fixture(scope="module")
def backup(postgres: Postgres, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A backup of our schema, with one project; the data directory is beside its directory."""
    root = tmp_path_factory.mktemp("backup")
    for words in (
        ("migrate",),
        ("bootstrap", "--url", "http://127.0.0.1", "--project", "first"),
        ("backup", str(root / "backups")),
        ("bootstrap", "--url", "http://127.0.0.1", "--project", "second"),
    ):
        done = _manage(postgres, root / "data", _OURS, *words)
        assert done.returncode == 0, done.stderr
    (made,) = (root / "backups").glob("holdline-*")
    return made


def _projects(postgres: Postgres) -> list[str]:
    rows = postgres.execute('SELECT name FROM "Our-own".projects_project ORDER BY 1', _DATABASE)
    return [row[0] for row in rows]


def _said(postgres: Postgres) -> list[tuple[str]]:
    return postgres.execute("SELECT said FROM public.somebody", _DATABASE)


def test_a_restore_into_another_schema_is_refused(postgres: Postgres, backup: Path) -> None:
    done = _manage(postgres, backup.parents[1] / "data", "", "restore", str(backup), "--replace")
    assert done.returncode != 0
    assert "the tables of this server are in the schema public" in " ".join(done.stderr.split())
    assert "Our-own" in done.stderr
    assert _said(postgres) == [("mine",)]


def test_a_restore_replaces_its_schema_and_no_other(postgres: Postgres, backup: Path) -> None:
    assert _projects(postgres) == ["first", "second"]
    words = ("restore", str(backup), "--replace")
    done = _manage(postgres, backup.parents[1] / "data", _OURS, *words)
    assert done.returncode == 0, done.stderr
    assert _projects(postgres) == ["first"]
    assert _said(postgres) == [("mine",)]


def test_a_restore_is_not_kept_beside_a_server_that_has_come(postgres: Postgres) -> None:
    with (
        psycopg.connect(postgres.url(_DATABASE)),
        pytest.raises(psycopg.errors.RaiseException, match=SERVED),
    ):
        postgres.execute(END, _DATABASE)
