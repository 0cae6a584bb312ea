"""apt-get without -y: its question, the answer, the progress, the exit code.

The tests build the packages themselves and need no network.
"""

from collections.abc import Iterator

import pytest

from tests.support.accounts import Account, requires
from tests.support.hosts.apt_repository import Repository, apt_repository
from tests.support.stack import Stack


@pytest.fixture
def repository() -> Iterator[Repository]:
    """A package that pulls in another one."""
    with apt_repository() as built:
        yield built


async def test_apt_get_asks_and_installs_after_yes(stack: Stack, repository: Repository) -> None:
    async with stack.caller() as caller:
        session = await caller.start(repository.command)
        await session.until("awaiting_input")
        assert session.kind == "line"
        assert session.result["prompt"]["text"] == "Do you want to continue? [Y/n] "
        await session.send("Y\n", wait_seconds=30)
        await session.until("exited", 60)
        assert session.result["exit_code"] == 0
        assert f"Setting up {repository.application}" in session.seen
    assert repository.is_installed


async def test_apt_get_installs_nothing_after_no(stack: Stack, repository: Repository) -> None:
    async with stack.caller() as caller:
        session = await caller.start(repository.command)
        await session.until("awaiting_input")
        await session.send("n\n")
        await session.until("exited")
        assert session.result["exit_code"] == 1
    assert not repository.is_installed


@pytest.mark.requirement("S3.V1.1", "S3.V1.2", "S3.V1.3", "S3.V1.4", "S3.V1.5")
async def test_an_ordinary_user_installs_through_sudo(
    unprivileged_stack: Stack, sudoer: Account, repository: Repository
) -> None:
    requires("sudo")
    async with unprivileged_stack.caller() as caller:
        session = await caller.start(f"sudo -k {repository.command}")
        assert session.kind == "secret"
        await session.send(sudoer.password + "\n")
        await session.until("awaiting_input")
        assert "[Y/n]" in session.result["prompt"]["text"]
        await session.send("Y\n", wait_seconds=30)
        await session.until("exited", 60)
        assert session.result["exit_code"] == 0
        assert f"Setting up {repository.application}" in session.seen
    assert repository.is_installed
