"""The meaning of database errors, shown with real errors of SQLite."""

import sqlite3
from collections.abc import Callable
from pathlib import Path

import pytest
from django.db import DatabaseError, IntegrityError, InternalError, OperationalError
from django.db.utils import DatabaseErrorWrapper

from projects.storage import faults as storage_faults


def _raised(statements: Callable[[], object]) -> storage_faults.Error:
    """As Django passes it on."""
    from django.db import connection

    with pytest.raises(DatabaseError) as caught, DatabaseErrorWrapper(connection):
        statements()
    return caught.value


def _read_only(directory: Path) -> None:
    connection = sqlite3.connect(directory / "a")
    connection.execute("PRAGMA query_only = ON")
    connection.execute("CREATE TABLE t (x)")


def _damaged(directory: Path) -> None:
    (directory / "b").write_bytes(b"not a database at all" * 100)
    sqlite3.connect(directory / "b").execute("SELECT * FROM sqlite_master")


def _missing(directory: Path) -> None:
    sqlite3.connect(directory / "none" / "c").execute("SELECT 1")


def _locked(directory: Path) -> None:
    holder, other = (
        sqlite3.connect(directory / "d", isolation_level=None),
        sqlite3.connect(directory / "d", timeout=0),
    )
    holder.execute("BEGIN EXCLUSIVE")
    other.execute("CREATE TABLE t (x)")


def _full(directory: Path) -> None:
    connection = sqlite3.connect(directory / "e", isolation_level=None)
    connection.execute("PRAGMA max_page_count = 2")
    connection.execute("CREATE TABLE t (x)")
    connection.execute("INSERT INTO t VALUES (zeroblob(100000))")


def _misspelt(directory: Path) -> None:
    sqlite3.connect(directory / "f").execute("SELEKT 1")


def _doubled(directory: Path) -> None:
    connection = sqlite3.connect(directory / "g")
    connection.execute("CREATE TABLE t (x PRIMARY KEY)")
    connection.executescript("INSERT INTO t VALUES (1); INSERT INTO t VALUES (1)")


@pytest.mark.parametrize(
    ("provoke", "is_fault", "is_broken", "is_rolled_back"),
    [
        (_read_only, True, True, True),
        (_damaged, True, True, False),
        (_missing, True, True, True),
        (_locked, True, False, True),
        (_full, True, True, False),
        (_misspelt, True, False, False),
        (_doubled, False, False, False),
    ],
)
def test_errors_of_sqlite(
    provoke: Callable[[Path], None],
    is_fault: bool,
    is_broken: bool,
    is_rolled_back: bool,
    tmp_path: Path,
) -> None:
    error = _raised(lambda: provoke(tmp_path))
    found = (
        storage_faults.is_fault(error),
        storage_faults.is_broken(error),
        storage_faults.is_rolled_back(error),
    )
    assert found == (is_fault, is_broken, is_rolled_back)


@pytest.mark.parametrize(
    ("kind", "state", "is_fault", "is_broken", "is_rolled_back"),
    [
        (InternalError, "25006", True, True, True),
        (OperationalError, "40P01", True, False, True),
        (OperationalError, "53300", True, False, True),
        (InternalError, "XX001", True, True, False),
        (OperationalError, "57P01", True, False, False),
        (IntegrityError, "23505", False, False, False),
    ],
)
def test_states_of_postgresql(
    kind: type[DatabaseError], state: str, is_fault: bool, is_broken: bool, is_rolled_back: bool
) -> None:
    class Cause(Exception):
        sqlstate = state

    error = kind("as it says")
    error.__cause__ = Cause()
    found = (
        storage_faults.is_fault(error),
        storage_faults.is_broken(error),
        storage_faults.is_rolled_back(error),
    )
    assert found == (is_fault, is_broken, is_rolled_back)
