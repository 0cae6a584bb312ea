"""A database that refuses writes, or is replaced.

Readiness says so, and the same process recovers by itself.
"""

import shutil
import sqlite3
import subprocess
from collections.abc import Iterator
from contextlib import closing, suppress
from pathlib import Path

import httpx2
import pytest

from tests.support.accounts import requires_root
from tests.support.mcp.client import ToolRefusedError
from tests.support.stack import Stack
from tests.support.waiting import await_until

_PAGES = 20

pytestmark = [pytest.mark.fault, pytest.mark.sqlite]


def _run(*command: str) -> None:
    subprocess.run(command, check=True, timeout=30, capture_output=True)


@pytest.fixture
def small_disk(own_stack: Stack) -> Iterator[Path]:
    """The stack's data directory on a file system of its own; its server is not running."""
    requires_root()
    own_stack.kill_server()
    own_stack.database.close()
    kept = own_stack.root / "kept"
    own_stack.data_dir.rename(kept)
    own_stack.data_dir.mkdir(mode=0o700)
    _run("mount", "-t", "tmpfs", "-o", "size=24m,mode=700", "tmpfs", str(own_stack.data_dir))
    try:
        shutil.copytree(kept, own_stack.data_dir, dirs_exist_ok=True)
        yield own_stack.data_dir
    finally:
        own_stack.kill_server()
        own_stack.database.close()
        _run("umount", str(own_stack.data_dir))


def _open_databases(pid: int) -> int:
    """The connections that a process has to the database."""
    found = 0
    for descriptor in Path(f"/proc/{pid}/fd").iterdir():
        with suppress(OSError):
            found += descriptor.readlink().name == "db.sqlite3"
    return found


async def _await_ready(stack: Stack, status: int) -> None:
    async def is_so() -> bool:
        async with httpx2.AsyncClient(timeout=60) as client:
            return (await client.get(f"http://127.0.0.1:{stack.port}/readyz")).status_code == status

    await await_until(is_so, 60, f"/readyz to answer {status}")


async def _await_work(stack: Stack) -> None:
    """Calls that write work again, each of several in a row."""

    async def is_so() -> bool:
        with suppress(ToolRefusedError):
            async with stack.caller() as caller:
                await caller.call("execute_command", command="true")
                return True
        return False

    await await_until(is_so, 60, "a call that writes to work")
    async with stack.caller() as caller:
        for _ in range(6):
            assert (await caller.call("execute_command", command="echo again"))[
                "stdout"
            ] == "again\n"


async def test_a_server_that_began_on_a_read_only_disk_writes_once_it_can(
    own_stack: Stack, small_disk: Path
) -> None:
    _run("mount", "-o", "remount,ro", str(small_disk))
    own_stack.start_server()
    await _await_ready(own_stack, 503)
    # Each page reads the database over a connection of its own, which has to end with the page.
    async with httpx2.AsyncClient(timeout=60, cookies={"sessionid": "a" * 32}) as client:
        for _ in range(_PAGES):
            await client.get(f"http://127.0.0.1:{own_stack.port}/admin/")
    assert own_stack.server is not None
    assert _open_databases(own_stack.server.pid) < _PAGES
    _run("mount", "-o", "remount,rw", str(small_disk))
    await _await_ready(own_stack, 200)
    await _await_work(own_stack)


async def test_a_full_disk_is_not_ready_until_there_is_room(
    own_stack: Stack, small_disk: Path
) -> None:
    own_stack.start_server()
    await _await_ready(own_stack, 200)
    filler = small_disk / "filler"
    with filler.open("wb", buffering=0) as file, suppress(OSError):
        while file.write(b"x" * 4096):
            pass
    await _await_ready(own_stack, 503)
    filler.unlink()
    await _await_ready(own_stack, 200)
    await _await_work(own_stack)


async def test_a_locked_database_is_not_ready_until_it_is_free(own_stack: Stack) -> None:
    await _await_ready(own_stack, 200)
    with closing(sqlite3.connect(own_stack.data_dir / "db.sqlite3", isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        await _await_ready(own_stack, 503)
        other.execute("ROLLBACK")
    await _await_ready(own_stack, 200)
    await _await_work(own_stack)


async def test_a_file_that_takes_the_databases_place_is_the_one_that_is_used(
    own_stack: Stack,
) -> None:
    await _await_work(own_stack)
    file, other = own_stack.data_dir / "db.sqlite3", own_stack.data_dir / "other.sqlite3"
    with closing(sqlite3.connect(file)) as before, closing(sqlite3.connect(other)) as copy:
        before.backup(copy)
        copy.execute("UPDATE projects_controller SET name = 'renamed'")
        copy.commit()
    own_stack.database.close()
    for suffix in ("-wal", "-shm"):
        file.with_name(file.name + suffix).unlink(missing_ok=True)
    other.rename(file)

    async def is_used() -> bool:
        async with own_stack.caller() as caller:
            return bool(
                (await caller.call("list_controllers"))["controllers"][0]["name"] == "renamed"
            )

    await await_until(is_used, 90, "the new file to be read")


async def test_a_database_file_that_is_gone_is_not_made_anew(own_stack: Stack) -> None:
    file, away = own_stack.data_dir / "db.sqlite3", own_stack.data_dir / "away.sqlite3"
    await _await_ready(own_stack, 200)
    file.rename(away)
    await _await_ready(own_stack, 503)
    async with httpx2.AsyncClient(timeout=60, cookies={"sessionid": "a" * 32}) as client:
        answer = await client.get(f"http://127.0.0.1:{own_stack.port}/admin/")
    assert answer.status_code == 503
    assert "The database cannot be used now" in answer.text
    assert not file.exists()
    away.rename(file)
    await _await_ready(own_stack, 200)
    await _await_work(own_stack)
