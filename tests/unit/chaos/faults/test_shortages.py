"""A shortage is made on what belongs to the run, and never on the machine."""

import asyncio
import errno
import os
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from chaos.faults.acts import ACTS
from chaos.faults.harm import Act, Harm
from chaos.faults.kinds import KINDS
from chaos.faults.means import require
from chaos.plant import disks
from chaos.plant.processes import Command, Process
from chaos.plant.product import until
from tests.unit.chaos.faults.harmed import fault_of, harm_of


@pytest.mark.parametrize("kind", ["daemon_disk_full", "daemon_disk_read_only"])
async def test_a_disk_that_others_use_is_left_alone(kind: str, tmp_path: Path) -> None:
    with (
        harm_of(tmp_path, state=tmp_path, daemon=None) as harm,
        pytest.raises(RuntimeError, match="no disk of this run"),
    ):
        await ACTS[kind](harm, fault_of(kind))
    assert not (tmp_path / ".filler").exists()
    (tmp_path / "new").touch()


def test_faults_of_disks_need_disks_of_the_run() -> None:
    assert {kind.needs for name, kind in KINDS.items() if "_disk_" in name} == {"tmpfs"}


@pytest.fixture
async def process(tmp_path: Path) -> AsyncIterator[Process]:
    """A process that says each second whether it can write a file, and start another process."""
    log = tmp_path.parent / f"{tmp_path.name}.log"
    arguments = [sys.executable, "-c", _PROBE, str(tmp_path / "probe")]
    found = Process("server0", log, lambda: Command(arguments, dict(os.environ), tmp_path))
    found.start()
    yield found
    await found.end()


_PROBE = """
import os, subprocess, sys, time
while True:
    for what, try_it in {
        "write": lambda: open(sys.argv[1], "w").close(),
        "fork": lambda: subprocess.run(["true"]),
    }.items():
        try:
            try_it()
            print(what, "works", flush=True)
        except OSError as error:
            print(what, error.strerror, flush=True)
    time.sleep(0.05)
"""


async def _said(process: Process, text: str, since: int = 0) -> int:
    """Wait until a process says a text; return the length of all that it has said."""
    await until(lambda: text in process.said()[since:], 60, text)
    return len(process.said())


async def _does(act: Act, harm: Harm, kind: str, process: Process, said: str) -> None:
    """Do a fault until a process says what it meets, and undo it."""
    doing = asyncio.ensure_future(act(harm, fault_of(kind, 3600)))
    before = await _said(process, said)
    doing.cancel()
    await asyncio.gather(doing, return_exceptions=True)
    word = said.split(maxsplit=1)[0]
    await _said(process, f"{word} works", before)


@pytest.mark.fault
async def test_a_process_without_processes_cannot_fork_until_the_fault_is_over(
    process: Process, tmp_path: Path
) -> None:
    require({"control groups"})
    await _said(process, "fork works")
    with harm_of(tmp_path, servers=[process]) as harm:
        act = ACTS["server_processes"]
        await _does(act, harm, "server_processes", process, f"fork {os.strerror(errno.EAGAIN)}")


@pytest.mark.fault
async def test_a_disk_that_is_read_only_takes_no_file_until_the_fault_is_over(
    process: Process, tmp_path: Path
) -> None:
    disks.mount(tmp_path, "1m")
    try:
        await _said(process, "write works")
        with harm_of(tmp_path.parent, servers=[process], data=tmp_path) as harm:
            act = ACTS["server_disk_read_only"]
            said = f"write {os.strerror(errno.EROFS)}"
            await _does(act, harm, "server_disk_read_only", process, said)
    finally:
        disks.unmount_all(tmp_path)
