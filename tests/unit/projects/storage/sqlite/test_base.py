"""A database file that is not there is made only where one is wanted."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from django.db import DEFAULT_DB_ALIAS, OperationalError

from config.settings.databases import sqlite
from projects.storage import encoding, unfinished
from projects.storage.sqlite.base import DatabaseWrapper, making_database

pytestmark = pytest.mark.django_db


@pytest.fixture
def other(tmp_path: Path) -> DatabaseWrapper:
    """A connection, not opened yet, to a file that is not there."""
    return _connection_to(tmp_path / "db.sqlite3")


def _connection_to(path: Path) -> DatabaseWrapper:
    settings: dict[str, Any] = {
        **sqlite(path),
        "AUTOCOMMIT": True,
        "CONN_HEALTH_CHECKS": False,
        "TIME_ZONE": None,
    }
    return DatabaseWrapper(settings, alias="other")


def test_no_file_is_made_by_whoever_asks_for_one(other: DatabaseWrapper, tmp_path: Path) -> None:
    with pytest.raises(OperationalError, match="there is no database file"):
        other.ensure_connection()
    assert list(tmp_path.iterdir()) == []


def test_a_file_is_made_where_a_database_is_wanted(other: DatabaseWrapper, tmp_path: Path) -> None:
    with making_database():
        other.ensure_connection()
    other.close()
    assert (tmp_path / "db.sqlite3").exists()
    other.ensure_connection()
    other.close()


@pytest.mark.parametrize("problem", [encoding.problem_at_start, unfinished.problem])
def test_a_file_out_of_reach_is_told_by_whoever_opens_it(
    monkeypatch: pytest.MonkeyPatch, problem: Callable[[], str], tmp_path: Path
) -> None:
    away = _connection_to(tmp_path / ("x" * 300))
    with pytest.raises(OperationalError, match="cannot be reached: File name too long"):
        away.ensure_connection()
    monkeypatch.setattr(encoding, "connections", {DEFAULT_DB_ALIAS: away})
    monkeypatch.setattr(unfinished, "connection", away)
    assert problem() == ""
