"""``manage.py migrate`` on a PostgreSQL whose tables running servers use at the same time."""

import subprocess
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import psycopg
import pytest

from tests.support.databases.postgres import Postgres, provisioned_postgres
from tests.support.stack import PROJECT_ROOT
from tests.support.waiting import wait_until

pytestmark = pytest.mark.fault

# It changes two tables: the commands, and then, on the way back, the hosts.
_BACK_TO = "0033_restores"
_LIMIT = """
from django.db import connection
with connection.schema_editor() as editor, connection.cursor() as cursor:
    cursor.execute("SHOW statement_timeout")
    print(*cursor.fetchone())
"""
_TRANSACTION_SECONDS = 0.3
_COMMANDS, _HOSTS = "projects_controllercommand", "projects_controller"


@pytest.fixture
def postgres() -> Iterator[Postgres]:
    """A server of its own with a migrated database."""
    server, _ = provisioned_postgres()
    server.start()
    yield server
    server.remove()


def _migrate(postgres: Postgres, data_dir: Path, settings: str) -> subprocess.Popen[str]:
    return _manage(postgres, data_dir, settings, "migrate", "projects", _BACK_TO)


def _manage(
    postgres: Postgres, data_dir: Path, settings: str, *words: str
) -> subprocess.Popen[str]:
    url = f"{postgres.url()}?options=" + "%20".join(f"-c%20{one}" for one in settings.split())
    return subprocess.Popen(
        [sys.executable, "manage.py", *words],
        cwd=PROJECT_ROOT,
        env={"PATH": "/usr/bin:/bin", "DATABASE_URL": url, "HOLDLINE_DATA_DIR": str(data_dir)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def _uses(server: psycopg.Connection, table: str) -> None:
    """Take the lock that a statement on rows of the table takes."""
    server.execute(f"LOCK TABLE {table} IN ROW EXCLUSIVE MODE".encode())


def _waits_for_a_lock(postgres: Postgres) -> bool:
    asked = "SELECT count(*) FROM pg_locks WHERE NOT granted AND mode = 'AccessExclusiveLock'"
    return postgres.execute(asked) != [(0,)]


def test_a_migration_and_a_server_never_wait_for_each_other(
    postgres: Postgres, tmp_path: Path
) -> None:
    with psycopg.connect(postgres.url()) as server:
        # The server has the second table of the migration, and then wants the first one.
        _uses(server, _HOSTS)
        migrate = _migrate(postgres, tmp_path, "lock_timeout=100s deadlock_timeout=2s")
        wait_until(lambda: _waits_for_a_lock(postgres), 60, "the migration to wait")
        _uses(server, _COMMANDS)
        server.commit()
    _, said = migrate.communicate(timeout=120)
    assert (migrate.returncode, said) == (0, "")


def test_locks_that_come_too_late_are_asked_for_again(postgres: Postgres, tmp_path: Path) -> None:
    with psycopg.connect(postgres.url()) as server:
        _uses(server, _HOSTS)
        migrate = _migrate(postgres, tmp_path, "lock_timeout=50ms")
        assert migrate.stderr is not None
        assert "trying again, 2 of 10" in migrate.stderr.readline()
        server.commit()
    _, said = migrate.communicate(timeout=120)
    assert migrate.returncode == 0, said


def test_longer_transactions_do_not_keep_a_migration_out(
    postgres: Postgres, tmp_path: Path
) -> None:
    """There is always one of two servers in a transaction, unless the migration waits longer."""
    with (
        psycopg.connect(postgres.url()) as present,
        psycopg.connect(postgres.url()) as following,
        ThreadPoolExecutor() as threads,
    ):
        servers = [present, following]
        _uses(servers[0], _HOSTS)
        migrate = _migrate(postgres, tmp_path, "lock_timeout=2s")
        said = threads.submit(migrate.communicate, timeout=120)
        while not said.done():
            wait_until(lambda: said.done() or _waits_for_a_lock(postgres), 60, "the next wait")
            # The following server is behind the migration, until that gives up.
            used = threads.submit(_uses, servers[1], _HOSTS)
            threading.Event().wait(_TRANSACTION_SECONDS)
            servers[0].commit()
            used.result()
            servers.reverse()
    assert migrate.returncode == 0, said.result()


def test_a_migration_takes_as_long_as_its_tables_are_large(
    postgres: Postgres, tmp_path: Path
) -> None:
    shell = _manage(postgres, tmp_path, "statement_timeout=30s", "shell", "--command", _LIMIT)
    shown, said = shell.communicate(timeout=120)
    assert (shell.returncode, shown.split()[-1]) == (0, "0"), said


def test_a_lock_that_is_never_given_back_ends_it_with_one_line(
    postgres: Postgres, tmp_path: Path
) -> None:
    with psycopg.connect(postgres.url()) as server:
        _uses(server, _HOSTS)
        _, said = _migrate(postgres, tmp_path, "lock_timeout=50ms").communicate(timeout=120)
    assert said.count("trying again") == 9
    assert "CommandError: not migrated: running servers held locks in each of 10 attempts" in said
    assert "Traceback" not in said
    migrated = f"SELECT count(*) FROM django_migrations WHERE name > '{_BACK_TO}'"
    assert postgres.execute(migrated, "holdline") != [(0,)]
