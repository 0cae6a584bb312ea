"""The kernel says who has the lock of a session, whatever a program wrote into it."""

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from controller_client.protocol.messages import StartInteractiveCmd
from controller_client.session_files.directory import (
    HolderRecord,
    SessionDirectory,
    create,
    directory_of,
)
from controller_client.session_files.lock_owner import (
    HOLDER_NAME,
    living_holder,
    locker,
    recorded_processes,
)
from controller_client.system.boot import boot_id
from controller_client.system.process_tree import ProcessInfo, read_process

HOLD = """
import fcntl, sys
lock = open(sys.argv[1], "r+")
fcntl.flock(lock, fcntl.LOCK_EX)
open("/proc/self/comm", "w").write(sys.argv[2])
print("held", flush=True)
sys.stdin.read()
"""


@pytest.fixture
def session(tmp_path: Path) -> SessionDirectory:
    assert create(tmp_path, StartInteractiveCmd(seq=1, session_id="0b0c", command="cat"))
    (tmp_path / "sessions" / "0b0c" / "holder.lock").write_text("1\n")
    return directory_of(tmp_path, "0b0c")


@contextmanager
def held(session: SessionDirectory, name: str) -> Iterator[int]:
    """Another process of this name has the lock; yields its process id."""
    with subprocess.Popen(
        [sys.executable, "-c", HOLD, str(session.path / "holder.lock"), name],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"held\n"
        yield process.pid


def _ourselves() -> ProcessInfo:
    process = read_process(os.getpid())
    assert process is not None
    return process


def test_a_lock_that_nobody_has_has_no_owner(session: SessionDirectory) -> None:
    assert (locker(session), living_holder(session)) == (None, None)


def test_the_process_that_looks_is_no_other_owner(session: SessionDirectory) -> None:
    lock = session.lock()
    assert lock is not None
    session.sign(lock)
    assert locker(session) is None
    os.close(lock)


def test_the_holder_is_found_whatever_number_is_in_the_lock(session: SessionDirectory) -> None:
    with held(session, HOLDER_NAME) as pid:
        for written in ("1\n", "", "nonsense\n", f"{os.getpid()}\n"):
            (session.path / "holder.lock").write_text(written)
            owner = locker(session)
            assert owner is not None
            assert (owner.pid, owner.name) == (pid, HOLDER_NAME)
            holder = living_holder(session)
            assert holder is not None
            assert holder.pid == pid


def test_a_program_that_took_the_lock_is_its_owner_and_no_holder(
    session: SessionDirectory,
) -> None:
    with held(session, "program") as pid:
        owner = locker(session)
        assert owner is not None
        assert (owner.pid, owner.name) == (pid, "program")
        assert living_holder(session) is None


def test_the_lock_of_another_session_is_not_this_ones(
    session: SessionDirectory, tmp_path: Path
) -> None:
    assert create(tmp_path, StartInteractiveCmd(seq=1, session_id="other", command="cat"))
    other = directory_of(tmp_path, "other")
    (other.path / "holder.lock").write_text("1\n")
    with held(other, HOLDER_NAME) as others, held(session, HOLDER_NAME) as ours:
        found = [locker(other), locker(session)]
        assert [owner.pid for owner in found if owner is not None] == [others, ours]
    (other.path / "holder.lock").unlink()
    assert (locker(other), locker(session)) == (None, None)


def test_processes_on_record_count_while_they_are_the_same(session: SessionDirectory) -> None:
    ours = _ourselves()
    members = [(ours.pid, ours.started), (ours.pid, ours.started + 1), (2**31 - 1, 5)]
    session.write_record(HolderRecord(boot_id=boot_id(), members=members))
    assert [process.pid for process in recorded_processes(session)] == [ours.pid]
    session.write_record(HolderRecord(boot_id="an earlier boot", members=members))
    assert recorded_processes(session) == []
    (session.path / "record.json").unlink()
    assert recorded_processes(session) == []
