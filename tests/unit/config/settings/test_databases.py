"""DATABASE_URL becomes DATABASES in the form that Django wants."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from django.core.exceptions import ImproperlyConfigured

from config.settings.databases import database_settings
from projects.conf.setting import Environment

DATA = Path("/data")


def test_without_a_url_the_database_is_a_file_in_the_data_directory() -> None:
    found = database_settings(Environment({}), DATA)
    assert (found["ENGINE"], found["NAME"]) == ("projects.storage.sqlite", DATA / "db.sqlite3")
    # Without it a transaction that reads before it writes fails when another one wrote meanwhile.
    assert found["OPTIONS"]["transaction_mode"] == "IMMEDIATE"
    assert "journal_mode=WAL" in found["OPTIONS"]["init_command"]


def test_a_postgresql_url_is_taken_apart() -> None:
    url = "postgres://u%40x:p%2Fw@db.example:6432/name?sslmode=require"
    found = database_settings(Environment({"DATABASE_URL": url}), DATA)
    assert (found["USER"], found["PASSWORD"], found["HOST"], found["PORT"], found["NAME"]) == (
        "u@x",
        "p/w",
        "db.example",
        "6432",
        "name",
    )
    assert found["CONN_HEALTH_CHECKS"] is True
    assert found["OPTIONS"]["sslmode"] == "require"


def test_statements_are_prepared_unless_the_url_says_that_a_pooler_cannot() -> None:
    found = database_settings(Environment({"DATABASE_URL": "postgres://u@db/name"}), DATA)[
        "OPTIONS"
    ]
    assert found["server_side_binding"] is True
    assert found["prepare_threshold"] > 0
    found = database_settings(
        Environment({"DATABASE_URL": "postgres://u@db/name?prepare_threshold=0"}), DATA
    )["OPTIONS"]
    assert found["prepare_threshold"] is None


def test_a_threshold_that_is_no_number_is_reported() -> None:
    environment = Environment({"DATABASE_URL": "postgres://u@db/name?prepare_threshold=soon"})
    database_settings(environment, DATA)
    with pytest.raises(ImproperlyConfigured, match="prepare_threshold"):
        environment.finish()


def test_another_scheme_is_reported_without_the_url() -> None:
    environment = Environment({"DATABASE_URL": "mysql://user:secret@host/db"})
    database_settings(environment, DATA)
    with pytest.raises(ImproperlyConfigured, match="DATABASE_URL must start") as error:
        environment.finish()
    assert "secret" not in str(error.value)


@pytest.mark.parametrize(
    "url",
    [
        "postgres://u:hush/hush@host/db",
        "postgres://u:hush#@host/db",
        "postgres://u:hush@[::1/db",
        "postgres://u:1/hush@host/db",
        "postgres://u:1?hush@host/db",
        "postgres://u:1#hush@host/db",
    ],
)
def test_a_password_that_is_not_quoted_is_reported_without_it(url: str) -> None:
    environment = Environment({"DATABASE_URL": url})
    database_settings(environment, DATA)
    with pytest.raises(ImproperlyConfigured, match="%2F") as error:
        environment.finish()
    assert "hush" not in str(error.value)


@pytest.mark.parametrize(
    "url",
    ["sqlite:////srv/a@b/db", "postgres://u:p@host/db?application_name=a@b", "postgres:///db"],
)
def test_an_at_sign_that_belongs_to_no_password_is_understood(url: str) -> None:
    environment = Environment({"DATABASE_URL": url})
    database_settings(environment, DATA)
    environment.finish()


@pytest.mark.parametrize(
    ("url", "threads"),
    [("", 1), ("sqlite:////data/db.sqlite3", 1), ("postgres://a:b@127.0.0.1/holdline", 4)],
)
def test_sqlite_has_one_thread_however_it_is_named(url: str, threads: int, tmp_path: Path) -> None:
    show = "from config.settings import base; print(base.DATABASE_THREADS)"
    done = subprocess.run(
        [sys.executable, "-c", show],
        cwd=Path(__file__).parents[4],
        env={"PATH": os.defpath, "HOLDLINE_DATA_DIR": str(tmp_path), "DATABASE_URL": url},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout == f"{threads}\n"
