"""Programs that belong to somebody else while they ask: sudo, su, passwd."""

from collections.abc import Iterator

import pytest

from tests.support.accounts import Account, ordinary_user, requires
from tests.support.stack import Stack


@pytest.fixture
def newcomer() -> Iterator[Account]:
    """A user whose password the test changes."""
    with ordinary_user("n") as account:
        yield account


@pytest.mark.requirement("S3.V1.2", "S3.V1.3", "S3.V1.5")
async def test_sudo_asks_an_ordinary_user_and_takes_the_second_answer(stack: Stack, sudoer: Account) -> None:
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


async def test_sudo_under_a_daemon_without_privileges(unprivileged_stack: Stack, sudoer: Account) -> None:
    requires("sudo")
    async with unprivileged_stack.caller() as caller:
        session = await caller.start("sudo -k id")
        assert (session.result["state"], session.kind) == ("awaiting_input", "secret")
        assert sudoer.name in session.result["prompt"]["text"]
        await session.send(sudoer.password + "\n")
        assert (session.result["state"], session.result["exit_code"]) == ("exited", 0)
        assert "uid=0(root)" in session.result["output"]


async def test_an_unprivileged_daemon_knows_by_the_kernel_when_a_program_waits(unprivileged_stack: Stack, sudoer: Account) -> None:
    async with unprivileged_stack.caller() as caller:
        session = await caller.start("""bash -c 'id -un; read -p "Name: " n; echo "<$n>"'""")
        assert sudoer.name in session.result["output"]
        assert (session.result["state"], session.kind, session.evidence) == ("awaiting_input", "line", "kernel")
        await session.send("ada\n")
        assert "<ada>" in session.result["output"]
        assert session.result["exit_code"] == 0


async def test_su_opens_a_shell_of_another_user(unprivileged_stack: Stack, newcomer: Account) -> None:
    requires("su")
    async with unprivileged_stack.caller() as caller, caller.terminal(f"su - {newcomer.name}") as session:
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
            assert (session.result["state"], session.kind) == ("awaiting_input", "secret"), session.seen
            await session.send(answer + "\n")
        assert (session.result["state"], session.result["exit_code"]) == ("exited", 0), session.seen
        assert "success" in session.seen
