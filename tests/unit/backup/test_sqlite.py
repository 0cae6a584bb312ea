"""The file of SQLite that a restore puts in the place of the old one."""

import os
import pwd
import sqlite3
from collections.abc import Iterator
from pathlib import Path

import pytest
from django.core.exceptions import ImproperlyConfigured
from django.db import connection

from backup.errors import BackupError
from backup.sqlite import SqliteStorage
from projects.storage.sqlite.server_lock import SUFFIX, DatabaseServed, lock, take_server_lock

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.skipif(os.geteuid() != 0, reason="only root restores what is another user's"),
]


@pytest.fixture
def database(tmp_path: Path) -> Iterator[Path]:
    """The file of a server that is not root."""
    if connection.vendor != "sqlite":
        pytest.skip("another database has no file")
    file, before = tmp_path / "db.sqlite3", connection.settings_dict["NAME"]
    sqlite3.connect(file).close()
    nobody = pwd.getpwnam("nobody")
    for path in (tmp_path, file):
        os.chown(path, nobody.pw_uid, nobody.pw_gid)
    connection.close()
    connection.settings_dict["NAME"] = file
    yield file
    connection.close()
    connection.settings_dict["NAME"] = before


@pytest.mark.parametrize("is_there", [True, False])
def test_a_database_that_root_restores_stays_the_servers(database: Path, is_there: bool) -> None:
    copy, nobody = database.with_name("copy"), pwd.getpwnam("nobody")
    with sqlite3.connect(copy) as made:
        made.execute("CREATE TABLE restored (x)")
    if not is_there:
        database.unlink()
    SqliteStorage().copy_in(copy, lambda: None)
    status = database.stat()
    assert (status.st_uid, status.st_gid, status.st_mode & 0o777) == (
        nobody.pw_uid,
        nobody.pw_gid,
        0o600,
    )
    with sqlite3.connect(database) as restored:
        restored.execute("SELECT x FROM restored")


def test_a_database_whose_path_has_signs_of_an_address_is_copied(database: Path) -> None:
    odd = database.with_name("a?b#c%20d.sqlite3")
    connection.settings_dict["NAME"] = odd
    with sqlite3.connect(odd) as made:
        made.execute("CREATE TABLE kept (x)")
    assert SqliteStorage().copy_out(database.with_name("copy")) == {"kept": 0}


def test_no_server_starts_while_a_database_is_replaced(database: Path) -> None:
    with SqliteStorage().kept_from_servers():
        with pytest.raises(DatabaseServed):
            lock(database)
        with pytest.raises(BackupError, match="still uses"), SqliteStorage().kept_from_servers():
            pass
    os.close(lock(database))
    nobody = pwd.getpwnam("nobody")
    assert database.with_name(f"{database.name}{SUFFIX}").stat().st_uid == nobody.pw_uid


def test_a_lock_that_is_a_link_is_refused_with_a_reason(database: Path) -> None:
    database.with_name(f"{database.name}{SUFFIX}").symlink_to(made := database.with_name("made"))
    with pytest.raises(ImproperlyConfigured, match="cannot be opened"):
        take_server_lock()
    assert not made.exists()
