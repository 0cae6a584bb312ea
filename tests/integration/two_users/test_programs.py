"""Programs that run as another user than the daemon's: whose they are, and how they end."""

import asyncio
import json
import os
import shlex
import signal
import subprocess
from collections.abc import Callable
from pathlib import Path
from random import randrange

from controller_client.system.users.two_users import acts_as_another
from tests.support.accounts import Account
from tests.support.mcp.client import Caller, Terminal
from tests.support.processes import (
    children_of,
    command_line,
    is_running,
    pids_mentioning,
    send_signal,
    status_field,
)
from tests.support.stack import Stack
from tests.support.waiting import await_until

CAPABILITIES = ("CapInh", "CapPrm", "CapEff", "CapAmb")
NONE = "0" * 16
SETGID_AND_SETUID = "00000000000000c0"


def _rights(pid: int) -> list[dict[str, str | None]]:
    """The capabilities of each thread of a process."""
    tasks = [int(task.name) for task in Path(f"/proc/{pid}/task").iterdir()]
    return [{name: status_field(task, name) for name in CAPABILITIES} for task in tasks]


def _pids(stack: Stack, session: Terminal) -> tuple[int, int, int]:
    """The fork server, the holder of a session, and its program."""
    holder = stack.holder_pid(session.session_id)
    assert holder is not None
    assert stack.daemon is not None
    (fork_server,) = children_of(stack.daemon.pid)
    program = (stack.state_dir / "sessions" / session.session_id / "pid").read_text()
    return fork_server, holder, int(program)


async def _start_hiding(caller: Caller) -> tuple[Terminal, Callable[[], list[int]]]:
    """Start a program that hides a process; return it, and how to find what it hid.

    That has no mark of its session, a terminal session of its own, and no parent.
    """
    hidden = f"sleep {randrange(10**6, 10**7)}"
    session = await caller.start(f"bash -c '(env -i setsid setsid -f {hidden} &); read x'")

    def found() -> list[int]:
        return [pid for pid in pids_mentioning(hidden) if command_line(pid) == hidden]

    await await_until(found, 90, "the hidden process")
    return session, found


async def test_a_program_has_its_users_groups_home_and_terminal(
    two_user_stack: Stack, sudoer: Account
) -> None:
    script = 'id; echo "$HOME $USER $LOGNAME $PWD"; stat -c %U $(tty); read -p "Name: " n; exit 7'
    async with two_user_stack.caller() as caller:
        session = await caller.start(f"bash -c '{script}'")
        assert (session.kind, session.evidence) == ("line", "kernel")
        shown = session.result["output"].splitlines()
        identity = f"uid={sudoer.uid}({sudoer.name}) gid={sudoer.gid}({sudoer.name})"
        assert shown[:3] == [
            f"{identity} groups={sudoer.gid}({sudoer.name})",
            f"{sudoer.home} {sudoer.name} {sudoer.name} {sudoer.home}",
            sudoer.name,
        ]
        await session.send("ada\n")
        assert (session.result["state"], session.result["exit_code"]) == ("exited", 7)


async def test_a_program_gets_no_descriptor_and_the_usual_umask(two_user_stack: Stack) -> None:
    look = (
        "import os, json; "
        "print(json.dumps([sorted(map(int, os.listdir('/proc/self/fd'))), os.umask(0)]))"
    )
    command = shlex.join(["/usr/bin/python3", "-c", look])
    async with two_user_stack.caller() as caller:
        # The last descriptor is the one by which the directory is read.
        in_pipes = await caller.call("execute_command", command=command)
        assert json.loads(in_pipes["stdout"]) == [[0, 1, 2, 3], 0o022]
        session = await caller.start(command)
        assert json.loads(session.result["output"]) == [[0, 1, 2, 3], 0o022]


async def test_the_fork_server_alone_can_become_another_user(
    two_user_stack: Stack, sudoer: Account
) -> None:
    async with two_user_stack.caller() as caller, caller.terminal("cat") as session:
        fork_server, holder, program = _pids(two_user_stack, session)
        assert two_user_stack.daemon is not None
        for pid in (two_user_stack.daemon.pid, holder, program):
            assert _rights(pid) == [dict.fromkeys(CAPABILITIES, NONE)] * len(_rights(pid))
        (rights,) = _rights(fork_server)
        assert list(rights.values()) == [NONE, SETGID_AND_SETUID, SETGID_AND_SETUID, NONE]
        assert two_user_stack.account is not None
        owner, user = str(two_user_stack.account.uid), str(sudoer.uid)
        assert (status_field(holder, "Uid") or "").split() == [owner, user, owner, user]
        assert (status_field(program, "Uid") or "").split() == [user] * 4
        assert (acts_as_another(holder), acts_as_another(program)) == (True, False)


async def test_what_a_program_hid_is_ended_with_its_session(two_user_stack: Stack) -> None:
    async with two_user_stack.caller() as caller:
        session, hidden = await _start_hiding(caller)
        await session.send("", terminate=True, wait_seconds=25)
        await session.until("exited")
        assert session.result["end_reason"] == "terminated"
        assert (session.result["survivors"] or [], hidden()) == ([], [])


async def test_what_a_killed_holder_leaves_is_ended_and_its_session_lost(
    two_user_stack: Stack,
) -> None:
    async with two_user_stack.caller() as caller:
        session, hidden = await _start_hiding(caller)
        _, holder, program = _pids(two_user_stack, session)
        os.kill(holder, signal.SIGKILL)
        database = two_user_stack.database
        await await_until(
            lambda: database.state(session.session_id) == "LOST", 90, "the session to be lost"
        )
        assert database.session(session.session_id, "survivors") == ("[]",)
        assert (hidden(), is_running(program)) == ([], False)


async def test_a_session_whose_holder_does_not_act_is_ended_without_it(
    two_user_stack: Stack,
) -> None:
    async with two_user_stack.caller() as caller:
        session = await caller.start(
            "bash -c 'trap \"\" TERM HUP; echo up; while :; do read; done'"
        )
        _, holder, program = _pids(two_user_stack, session)
        # Stopped again whenever the daemon has continued it.
        stop = f"import os, time\nwhile True: os.kill({holder}, 19); time.sleep(0.001)"
        stopper = _run(two_user_stack, stop)
        try:
            await session.send("", terminate=True, wait_seconds=0)
            await await_until(lambda: not is_running(program), 60, "the program to be ended")
        finally:
            stopper.kill()
            await asyncio.to_thread(stopper.wait)
            send_signal(holder, signal.SIGCONT)
        await await_until(lambda: not is_running(holder), 60, "the holder to end")
        assert two_user_stack.program_pids(session.session_id) == []


def _run(stack: Stack, source: str) -> subprocess.Popen[bytes]:
    """Run Python as the daemon's user, who may signal holders."""
    assert stack.account is not None
    command = [*stack.account.as_user, "/usr/bin/python3", "-c", source]
    return subprocess.Popen(command, cwd="/", env={"PATH": os.defpath})


async def test_a_daemon_without_its_fork_server_ends_and_the_next_one_goes_on(
    two_user_stack: Stack, sudoer: Account
) -> None:
    stack = two_user_stack
    async with stack.caller() as caller, caller.terminal("cat") as session:
        fork_server, _, _ = _pids(stack, session)
        assert stack.daemon is not None
        os.kill(fork_server, signal.SIGKILL)
        await await_until(lambda: stack.daemon.poll() is not None, 90, "the daemon to end")
        assert stack.daemon.returncode == 75
        assert "only a new daemon may start another" in stack.logs()
        stack.start_daemon()
        await session.send("still here\n")
        assert "still here" in session.result["output"]
        again = await caller.start("id -un")
        assert (again.result["output"].strip(), again.result["exit_code"]) == (sudoer.name, 0)
