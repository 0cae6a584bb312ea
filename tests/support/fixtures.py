"""Fixtures shared by the tests against the real stack. A shared stack is only used, never harmed."""

from collections.abc import AsyncIterator, Iterator

import pytest

from tests.support.accounts import Account, ordinary_user, requires_root
from tests.support.mcp_client import Caller, detached
from tests.support.stack import Stack, running_stack


@pytest.fixture(scope="session")
def stack() -> Iterator[Stack]:
    """One server and one daemon (of the user who runs the tests) for all tests that harm neither."""
    with running_stack() as started:
        yield started


@pytest.fixture
async def caller(stack: Stack) -> AsyncIterator[Caller]:
    """An MCP client of the project's own token."""
    async with detached(stack.caller()) as caller:
        yield caller


@pytest.fixture(scope="session")
def sudoer() -> Iterator[Account]:
    """An ordinary user with a password who may use sudo."""
    with ordinary_user("s", may_sudo=True) as account:
        yield account


@pytest.fixture(scope="session")
def unprivileged_stack(sudoer: Account) -> Iterator[Stack]:
    """As ``stack``, with the daemon running as an ordinary user."""
    requires_root()
    with running_stack(account=sudoer) as started:
        yield started
