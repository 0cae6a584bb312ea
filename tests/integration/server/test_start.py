"""The start of a server.

``manage.py runserver`` serves everything. A configuration that cannot work is refused before
anything is served.
"""

import os
import signal
import sqlite3
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest
from django.templatetags.static import static

from tests.support.databases.postgres import Postgres
from tests.support.ports import free_port
from tests.support.stack import (
    PROJECT_ROOT,
    RUNSERVER,
    SERVERS,
    Stack,
    accepts,
    running_stack,
    server_command,
)
from tests.support.waiting import wait_until

_START_SECONDS = 90.0


@pytest.fixture(scope="module", autouse=True)
def _starts_cold() -> Iterator[None]:
    """Start every server as an operator does."""
    usual, Stack.IS_WARM = Stack.IS_WARM, False
    yield
    Stack.IS_WARM = usual


@pytest.fixture(scope="module")
def developed(_starts_cold: None) -> Iterator[Stack]:
    """A stack whose server is ``manage.py runserver``."""
    usual, Stack.SERVER_KIND = Stack.SERVER_KIND, RUNSERVER
    try:
        with running_stack() as started:
            yield started
    finally:
        Stack.SERVER_KIND = usual


def _status(port: int, path: str, *, data: bytes | None = None) -> int:
    try:
        with urllib.request.urlopen(
            urllib.request.Request(f"http://127.0.0.1:{port}{path}", data=data), timeout=120
        ) as answer:
            return int(answer.status)
    except urllib.error.HTTPError as error:
        return error.code


async def test_runserver_serves_everything(developed: Stack) -> None:
    async with developed.caller() as caller, caller.terminal("cat") as session:
        await session.send("here\n")
        assert session.seen.split() == ["here", "here"]
    found = {
        path: _status(developed.port, path)
        for path in ("/healthz", "/readyz", "/admin/login/", static("admin/css/base.css"))
    }
    assert set(found.values()) == {200}, found
    assert _status(developed.port, "/mcp", data=b"{}") == 401
    assert _status(developed.port, "/nowhere", data=b"a" * (2 * 1024 * 1024)) == 413


def test_runserver_that_reloads_serves_everything_too(tmp_path: Path) -> None:
    port = free_port()
    environment = _environment(tmp_path)
    subprocess.run(
        [sys.executable, "manage.py", "migrate", "-v", "0"],
        cwd=PROJECT_ROOT,
        env=environment,
        check=True,
    )
    command = [word for word in server_command(RUNSERVER, port) if word != "--noreload"]
    with (tmp_path / "log").open("wb") as log:
        process = subprocess.Popen(
            command,
            cwd=PROJECT_ROOT,
            env=environment,
            stdout=log,
            stderr=log,
            start_new_session=True,
        )
        try:
            wait_until(lambda: accepts(port), _START_SECONDS, "the server to answer")
            assert _status(port, "/readyz") == 200
            assert _status(port, "/mcp", data=b"{}") == 401
        finally:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()


def test_runserver_without_asgi_refuses_to_start(tmp_path: Path) -> None:
    command = [sys.executable, "manage.py", "runserver", "--noasgi", "--noreload", str(free_port())]
    done = subprocess.run(
        command,
        cwd=PROJECT_ROOT,
        env=_environment(tmp_path),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1
    assert "neither /mcp nor controllers" in done.stderr


def _environment(data_dir: Path, **more: str) -> dict[str, str]:
    unset = {"DJANGO_SETTINGS_MODULE", "DATABASE_URL", "REDIS_URL"}
    return {name: value for name, value in os.environ.items() if name not in unset} | {
        "HOLDLINE_DATA_DIR": str(data_dir),
        **more,
    }


def _assert_refused(environment: dict[str, str], encoding: str) -> None:
    port = free_port()
    manage = (sys.executable, "manage.py")
    commands = [
        [*manage, "check"],
        [*manage, "migrate"],
        [*manage, "runserver", "--noreload", str(port)],
        server_command("daphne", port),
        server_command("uvicorn", port),
    ]
    for command in commands:
        done = subprocess.run(
            command,
            cwd=PROJECT_ROOT,
            env=environment,
            capture_output=True,
            text=True,
            check=False,
            timeout=120,
        )
        assert done.returncode != 0, command
        assert f"The database's encoding is {encoding}, not UTF-8" in done.stderr, (
            command,
            done.stderr[-2000:],
        )
        assert "ENCODING 'UTF8'" in done.stderr


@pytest.fixture(scope="module")
def postgres() -> Iterator[Postgres]:
    """A PostgreSQL server for this file."""
    server = Postgres()
    server.start()
    yield server

    server.remove()


@pytest.mark.parametrize("encoding", ["SQL_ASCII", "LATIN1"])
def test_a_postgresql_of_another_encoding_is_refused(
    tmp_path: Path, postgres: Postgres, encoding: str
) -> None:
    name = encoding.lower()
    postgres.execute(f"CREATE DATABASE {name} TEMPLATE template0 ENCODING '{encoding}' LOCALE 'C'")
    _assert_refused(_environment(tmp_path, DATABASE_URL=postgres.url(name)), encoding)


def test_a_sqlite_file_of_another_encoding_is_refused(tmp_path: Path) -> None:
    made = sqlite3.connect(tmp_path / "db.sqlite3")
    made.execute("PRAGMA encoding = 'UTF-16le'")
    made.execute("CREATE TABLE t (x TEXT)")
    made.close()
    _assert_refused(_environment(tmp_path), "UTF-16le")


@pytest.mark.parametrize("server", SERVERS)
def test_a_second_server_on_a_sqlite_file_is_refused(developed: Stack, server: str) -> None:
    refused = subprocess.run(
        server_command(server, free_port()),
        cwd=PROJECT_ROOT,
        env=developed.server_environment(),
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert refused.returncode != 0
    assert "another server process serves" in refused.stderr
    assert _status(developed.port, "/readyz") == 200
    # A process that was killed leaves no lock.
    developed.kill_server()
    developed.start_server()
    assert _status(developed.port, "/readyz") == 200


def test_a_check_makes_no_database(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "manage.py", "check"],
        cwd=PROJECT_ROOT,
        env=_environment(tmp_path),
        check=False,
    )
    assert done.returncode == 0
    assert not (tmp_path / "db.sqlite3").exists()
