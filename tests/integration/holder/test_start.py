"""What cannot be started is refused with a typed reason, before anything runs."""

import asyncio
import os
import pwd
import signal
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from controller_client.protocol.messages import (
    HolderHello,
    InteractiveCmdDone,
    Started,
    StartInteractiveCmd,
)
from controller_client.system.start_failure import StartFailed
from tests.support.hosts.holders import HolderHost, holder_host, holders_of
from tests.support.processes import children_of, is_running, status_field
from tests.support.waiting import await_until


@pytest.fixture
async def host(tmp_path: Path) -> AsyncIterator[HolderHost]:
    async with holder_host(tmp_path / "state") as host:
        yield host


@pytest.fixture
def files(tmp_path: Path) -> Path:
    """A directory with things that cannot be run."""
    (tmp_path / "plain").write_text("not a program")
    (tmp_path / "garbage").write_bytes(b"\x00\x01\x02")
    (tmp_path / "garbage").chmod(0o755)
    (tmp_path / "orphan").write_text("#!/no/such/interpreter\n")
    (tmp_path / "orphan").chmod(0o755)
    (tmp_path / "with space").write_text('#!/bin/sh\necho ran "$0" $#\n')
    (tmp_path / "with space").chmod(0o755)
    return tmp_path


async def _failure(host: HolderHost, **start: Any) -> tuple[str, str | None]:
    talk = await host.run(**start)
    failure = talk.all_of(Started)[0].failure
    assert failure is not None
    assert talk.all_of(Started)[0].pid is None
    assert talk.all_of(HolderHello)[0].summary.pid is None
    talk.forget()
    await await_until(
        lambda: not host.directory(talk.session_id).path.exists(), 55, "the session to be forgotten"
    )
    assert talk.all_of(InteractiveCmdDone) == []
    return failure.code, failure.errno_name


async def test_a_program_that_does_not_exist(host: HolderHost) -> None:
    assert await _failure(host, command="no-such-program --flag") == ("PROGRAM_NOT_FOUND", "ENOENT")
    assert await _failure(host, argv=["/no/such/program"]) == ("PROGRAM_NOT_FOUND", "ENOENT")


async def test_a_file_that_is_not_executable(host: HolderHost, files: Path) -> None:
    assert await _failure(host, argv=[str(files / "plain")]) == ("PROGRAM_NOT_EXECUTABLE", "EACCES")
    assert await _failure(host, argv=[str(files / "garbage")]) == (
        "PROGRAM_NOT_EXECUTABLE",
        "ENOEXEC",
    )
    assert await _failure(host, argv=[str(files)]) == ("PROGRAM_NOT_EXECUTABLE", "EISDIR")


async def test_a_script_whose_interpreter_is_missing(host: HolderHost, files: Path) -> None:
    assert await _failure(host, argv=[str(files / "orphan")]) == ("PROGRAM_NOT_FOUND", "ENOENT")


async def test_a_working_directory_that_is_not_there(host: HolderHost, files: Path) -> None:
    assert await _failure(host, command="true", cwd=str(files / "missing")) == (
        "CWD_NOT_FOUND",
        "ENOENT",
    )
    assert await _failure(host, command="true", cwd=str(files / "plain")) == (
        "CWD_NOT_FOUND",
        "ENOTDIR",
    )


async def test_an_environment_variable_that_loads_code(host: HolderHost) -> None:
    assert await _failure(host, command="true", env={"LD_PRELOAD": "/tmp/x.so"}) == (
        "ENV_NOT_ALLOWED",
        None,
    )


async def test_a_command_that_is_empty_or_has_a_nul(host: HolderHost) -> None:
    assert (await _failure(host, command="   "))[0] == "START_FAILED"
    assert (await _failure(host, command="echo \0"))[0] == "START_FAILED"
    assert (await _failure(host, argv=["echo", "\0"]))[0] == "START_FAILED"


async def test_a_path_with_a_space_and_arguments_are_run_as_they_are(
    host: HolderHost, files: Path
) -> None:
    talk = await host.run(argv=["./with space", "a b", ""], cwd=str(files))
    assert (await talk.done()).exit_code == 0
    assert talk.output == f"ran {files}/with space 2\r\n".encode()


async def test_the_program_keeps_the_name_it_was_called_by(host: HolderHost) -> None:
    talk = await host.run("ls /no/such/file")
    assert (await talk.done()).exit_code == 2
    assert talk.output.startswith(b"ls: ")


async def test_the_default_directory_is_home_and_a_relative_one_is_below_it(
    host: HolderHost,
) -> None:
    talk = await host.run("pwd")
    await talk.done()
    assert talk.output.strip().decode() == pwd.getpwuid(os.geteuid()).pw_dir


def _sleeps(pid: int) -> bool:
    return (status_field(pid, "State") or "").startswith("S")


@pytest.mark.skipif(os.geteuid() != 0, reason="limits the processes of another user")
async def test_no_process_left_is_a_lack_of_resources_and_the_next_start_works(
    host: HolderHost,
) -> None:
    import resource

    process = host.spawner._process
    assert process is not None
    unlimited = resource.prlimit(process.pid, resource.RLIMIT_NOFILE)

    async def limit(limits: tuple[int, int]) -> None:
        """For the fork server, and for the holder that waits for the next start."""
        resource.prlimit(process.pid, resource.RLIMIT_NOFILE, limits)
        await await_until(lambda: holders_of(process.pid), 55, "a spare")
        # A fork that is under way has the limits of before, and is no child to be seen yet. The
        # fork is over once the fork server sleeps.
        await await_until(lambda: _sleeps(process.pid), 55, "the fork server to sleep")
        # Also one that has just been forked, and has no name of its own yet.
        for child in children_of(process.pid):
            resource.prlimit(child, resource.RLIMIT_NOFILE, limits)

    # The fork server has its own files open by then.
    await await_until(lambda: holders_of(process.pid), 55, "the first spare")
    # Room for the holder's own files, not for a terminal and the pipe of its start.
    await limit((10, unlimited[1]))
    try:
        assert await _failure(host, command="true") == ("RESOURCE_EXHAUSTED", "EMFILE")
    finally:
        await limit(unlimited)
    talk = await host.run("echo recovered")
    await talk.done()
    assert talk.output == b"recovered\r\n"


async def test_a_holder_without_a_directory_is_refused_at_once(host: HolderHost) -> None:
    start = StartInteractiveCmd(
        seq=1, session_id="00000000-0000-0000-0000-000000000000", command="true"
    )
    with pytest.raises(StartFailed) as refused:
        await host.spawner.spawn(start)
    assert refused.value.failure.errno_name == "ENOENT"
    await (await host.run("true")).done()


async def test_a_second_holder_for_a_session_is_refused(host: HolderHost) -> None:
    talk = await host.run("cat")
    start = host.directory(talk.session_id).read_start()
    assert start is not None
    with pytest.raises(StartFailed) as refused:
        await host.spawner.spawn(start)
    assert refused.value.failure.errno_name == "EEXIST"
    await talk.type(b"unharmed\n")
    await talk.shows(b"unharmed")


async def test_a_spare_that_was_killed_is_not_missed(host: HolderHost) -> None:
    process = host.spawner._process
    assert process is not None
    await await_until(lambda: holders_of(process.pid), 55, "a spare")
    for spare in holders_of(process.pid):
        os.kill(spare, signal.SIGSTOP)
        # A child that it has just forked to rehearse has its connection, too, for a moment.
        dying = [spare, *children_of(spare)]
        os.kill(spare, signal.SIGKILL)
        await await_until(
            lambda dying=dying: not any(map(is_running, dying)), 55, "the spare to die"
        )
    talk = await host.run("echo without it")
    await talk.done()
    assert talk.output == b"without it\r\n"


async def test_many_starts_at_once_have_a_holder_each(host: HolderHost) -> None:
    talks = await asyncio.gather(*(host.run(f"echo {number}") for number in range(12)))
    for number, talk in enumerate(talks):
        await talk.done()
        assert talk.output == f"{number}\r\n".encode()
    assert len({talk.session_id for talk in talks}) == 12


async def test_a_home_that_cannot_be_looked_at_starts_at_the_root(host: HolderHost) -> None:
    talk = await host.run("pwd", env={"HOME": f"/{'x' * 300}"}, io_mode="pipe")
    assert ((await talk.done()).exit_code, bytes(talk.output)) == (0, b"/\n")


async def test_a_first_input_that_the_terminal_would_cut_is_refused(host: HolderHost) -> None:
    long = b"x" * 5000
    assert await _failure(host, command="cat", stdin_data=long) == ("INPUT_LINE_TOO_LONG", None)
    talk = await host.run("wc -c", stdin_data=long, stdin="closed", io_mode="pipe")
    await talk.done()
    assert talk.output == b"5000\n"
