"""Fixtures that the tests of a real stack share.

A test may use a shared stack, and never harms it.
"""

from collections.abc import AsyncIterator, Iterator, Mapping
from typing import Any

import pytest

from tests.support.accounts import Account, ordinary_user, requires_root
from tests.support.mcp.client import Caller, detached
from tests.support.mcp.declared_codes import check_code
from tests.support.stack import Stack, running_stack


@pytest.fixture(scope="session")
def stack() -> Iterator[Stack]:
    """One server and one daemon for all tests that harm neither.

    The daemon runs as the user who runs the tests.
    """
    with running_stack() as started:
        yield started


@pytest.fixture
async def caller(stack: Stack) -> AsyncIterator[Caller]:
    """An MCP client with the token of the first project."""
    async with detached(stack.caller()) as caller:
        yield caller


@pytest.fixture(scope="session")
def sudoer() -> Iterator[Account]:
    """An ordinary user with a password who may use sudo."""
    with ordinary_user("s", may_sudo=True) as account:
        yield account


@pytest.fixture(scope="session")
def unprivileged_stack(request: pytest.FixtureRequest, sudoer: Account) -> Iterator[Stack]:
    """A stack whose daemon runs as an ordinary user."""
    requires_root()
    if request.config.getoption("--two-users"):
        yield request.getfixturevalue("two_user_stack")
        return
    with running_stack(account=sudoer) as started:
        yield started


@pytest.fixture(scope="session")
def two_user_stack(sudoer: Account) -> Iterator[Stack]:
    """A stack whose daemon runs as one ordinary user, and its programs as another."""
    requires_root()
    with (
        ordinary_user("d") as keeper,
        running_stack(account=keeper, run_as=sudoer) as started,
    ):
        yield started


@pytest.fixture
def declared_codes_only(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every refusal of a tool in this process has a code that the tool declares."""
    from projects.accounts.authentication import Caller as Authenticated
    from projects.tools.base import Tool, ToolOutcome

    call = Tool.call

    async def checked(
        tool: Tool[Any], arguments: Mapping[str, Any] | None, caller: Authenticated
    ) -> ToolOutcome:
        outcome = await call(tool, arguments, caller)
        if outcome.is_error:
            check_code(tool.name, outcome.body["code"], tool.codes)
        return outcome

    monkeypatch.setattr(Tool, "call", checked)
