"""Starts as another user than the holder's: rights, limits, and what cannot be started."""

import os
from collections.abc import AsyncIterator
from pathlib import Path
from uuid import uuid4

import pytest

from controller_client.protocol.messages import (
    Admission,
    ResourceLimits,
    Started,
    StartInteractiveCmd,
)
from controller_client.session_files.directory import create
from controller_client.system.start_failure import StartFailed
from tests.support.accounts import Account, requires_root
from tests.support.hosts.holders import HolderHost, holder_host


@pytest.fixture
async def host(tmp_path: Path, sudoer: Account) -> AsyncIterator[HolderHost]:
    requires_root()
    async with holder_host(tmp_path, sudoer.name) as host:
        yield host


@pytest.mark.parametrize("io_mode", ["pipe", "pty"])
async def test_a_program_that_keeps_its_user_gains_nothing_by_sudo(
    host: HolderHost, sudoer: Account, io_mode: str
) -> None:
    admission = Admission(keeps_user=True, run_as=sudoer.name)
    talk = await host.run("sudo -n true 2>&1; id -u", io_mode=io_mode, admission=admission)
    await talk.done()
    assert b"no new privileges" in talk.output
    assert bytes(talk.output).split()[-1] == str(sudoer.uid).encode()


async def test_a_limit_of_processes_below_those_that_run_lets_the_program_start(
    host: HolderHost,
) -> None:
    await host.run("bash -c 'sleep 1000 & sleep 1000 & wait'")
    talk = await host.run(
        "sh -c 'echo up; sleep 0; true'", io_mode="pipe", limits=ResourceLimits(processes=2)
    )
    done = await talk.done()
    assert (bytes(talk.output), done.exit_code == 0) == (b"up\n", False)


async def test_a_directory_closed_to_the_programs_user_is_no_place_to_start(
    host: HolderHost, tmp_path: Path
) -> None:
    closed = tmp_path / "closed"
    closed.mkdir(mode=0o700)
    session_id = await host.spawn("true", cwd=str(closed))
    talk = await host.talk(session_id)
    talk.attach()
    failure = (await talk.get(Started)).failure
    assert failure is not None
    assert failure.code == "CWD_NOT_FOUND"


async def test_a_program_closed_to_the_user_is_not_executable(
    host: HolderHost, tmp_path: Path, sudoer: Account
) -> None:
    for parent in (tmp_path, *tmp_path.parents[:2]):
        parent.chmod(0o755)
    program = tmp_path / "closed"
    program.write_text("#!/bin/sh\n")
    program.chmod(0o700)
    talk = await host.talk(await host.spawn(str(program)))
    talk.attach()
    failure = (await talk.get(Started)).failure
    assert failure is not None
    assert failure.code == "PROGRAM_NOT_EXECUTABLE"
    os.chown(program, sudoer.uid, sudoer.gid)
    assert (await (await host.run(str(program))).done()).exit_code == 0


async def test_a_holder_that_cannot_become_the_user_starts_nothing(tmp_path: Path) -> None:
    async with holder_host(tmp_path) as host:
        start = StartInteractiveCmd(
            seq=1,
            session_id=str(uuid4()),
            command="touch /tmp/never",
            admission=Admission(run_as="nobody"),
        )
        create(tmp_path, start)
        with pytest.raises(StartFailed, match="Operation not permitted"):
            await host.spawner.spawn(start)
