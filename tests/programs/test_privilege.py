"""Programs that belong to another user while they ask: sudo, su, passwd."""

import re
import signal
import subprocess
from collections.abc import Iterator

import pytest

from tests.support.accounts import Account, ordinary_user, requires
from tests.support.processes import children_of, is_running, send_signal
from tests.support.stack import Stack
from tests.support.waiting import await_until


@pytest.fixture
def newcomer() -> Iterator[Account]:
    """Return an account whose password the test changes."""
    with ordinary_user("n") as account:
        yield account


@pytest.mark.requirement("S3.V1.2", "S3.V1.3", "S3.V1.5")
async def test_sudo_asks_an_ordinary_user_and_takes_the_second_answer(
    stack: Stack, sudoer: Account
) -> None:
    requires("sudo")
    async with stack.caller() as caller:
        session = await caller.start(f"{sudoer.shell_prefix} sudo -k id")
        assert (session.result["state"], session.kind) == ("awaiting_input", "secret")
        assert "assword" in session.result["prompt"]["text"]
        await session.send("wrong\n")
        assert session.kind == "secret"
        await session.send(sudoer.password + "\n")
        assert (session.result["state"], session.result["exit_code"]) == ("exited", 0)
        assert "uid=0(root)" in session.result["output"]


async def test_sudo_under_a_daemon_without_privileges(
    unprivileged_stack: Stack, sudoer: Account
) -> None:
    requires("sudo")
    async with unprivileged_stack.caller() as caller:
        session = await caller.start("sudo -k id")
        assert (session.result["state"], session.kind) == ("awaiting_input", "secret")
        assert sudoer.name in session.result["prompt"]["text"]
        await session.send(sudoer.password + "\n")
        assert (session.result["state"], session.result["exit_code"]) == ("exited", 0)
        assert "uid=0(root)" in session.result["output"]


async def test_an_unprivileged_daemon_knows_by_the_kernel_when_a_program_waits(
    unprivileged_stack: Stack, sudoer: Account
) -> None:
    async with unprivileged_stack.caller() as caller:
        session = await caller.start("""bash -c 'id -un; read -p "Name: " n; echo "<$n>"'""")
        assert sudoer.name in session.result["output"]
        assert (session.result["state"], session.kind, session.evidence) == (
            "awaiting_input",
            "line",
            "kernel",
        )
        await session.send("ada\n")
        assert "<ada>" in session.result["output"]
        assert session.result["exit_code"] == 0


async def test_su_opens_a_shell_of_another_user(
    unprivileged_stack: Stack, newcomer: Account
) -> None:
    requires("su")
    async with (
        unprivileged_stack.caller() as caller,
        caller.terminal(f"su - {newcomer.name}") as session,
    ):
        assert session.kind == "secret"
        await session.send(newcomer.password + "\n")
        assert session.result["state"] == "awaiting_input"
        await session.send("id -un\n")
        assert newcomer.name in session.result["output"]
        await session.send("exit\n")
        assert (session.result["state"], session.result["exit_code"]) == ("exited", 0)


async def test_passwd_asks_three_times(stack: Stack, newcomer: Account) -> None:
    requires("passwd")
    async with stack.caller() as caller:
        session = await caller.start(f"{newcomer.shell_prefix} passwd")
        replacement = "An0ther-long-enough-0ne"
        for answer in (newcomer.password, replacement, replacement):
            assert (session.result["state"], session.kind) == ("awaiting_input", "secret"), (
                session.seen
            )
            await session.send(answer + "\n")
        assert (session.result["state"], session.result["exit_code"]) == ("exited", 0), session.seen
        assert "success" in session.seen


async def test_a_process_of_root_that_outlives_the_end_is_named_in_the_result(
    unprivileged_stack: Stack, sudoer: Account
) -> None:
    requires("sudo")
    # A sudo that loses its terminal kills the command that it started, but not what left it.
    script = "trap '' HUP TERM INT; setsid -f sleep 120; echo up; exec tail -f /dev/null"
    async with unprivileged_stack.caller() as caller:
        session = await caller.start(f'sudo -k bash -c "{script}"')
        await session.send(sudoer.password + "\n", wait_for="up")
        await session.send("", terminate=True, wait_seconds=25)
        await session.until("exited")
        survivors = {
            int(pid): name
            for name, pid in re.findall(r"(\S+)\[(\d+)\]", " ".join(session.result["survivors"]))
        }
        try:
            (sleeping,) = [pid for pid, name in survivors.items() if name == "sleep"]
            assert is_running(sleeping)
            assert f"sleep[{sleeping}]" in session.result["hint"]
            assert "The session was terminated." not in session.result["hint"]
        finally:
            for pid in survivors:
                send_signal(pid, signal.SIGKILL)
        await await_until(lambda: not is_running(sleeping), 90, "root's process to be gone")


async def test_programs_can_be_traced_by_their_user_and_holders_cannot(
    unprivileged_stack: Stack, sudoer: Account
) -> None:
    daemon = unprivileged_stack.daemon
    assert daemon is not None
    async with unprivileged_stack.caller() as caller, caller.terminal("cat") as session:
        assert session.result["state"] == "awaiting_input"
        (program,) = unprivileged_stack.program_pids(session.session_id)
        (fork_server,) = children_of(daemon.pid)
        (holder,) = [pid for pid in children_of(fork_server) if program in children_of(pid)]
        assert {
            pid: _reads_memory_of(sudoer, pid) for pid in (daemon.pid, fork_server, holder, program)
        } == {
            daemon.pid: False,
            fork_server: False,
            holder: False,
            program: True,
        }


def _reads_memory_of(account: Account, pid: int) -> bool:
    looked = subprocess.run(
        [*account.as_user, "cat", f"/proc/{pid}/environ"], capture_output=True, check=False
    )
    return looked.returncode == 0
