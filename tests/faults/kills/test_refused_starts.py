"""Starts that were refused, then repeated under their request_id once nothing prevents them."""

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any
from uuid import uuid4

import pytest

from controller_client.policy.kill_switch import kept_stop
from tests.support.descriptors import without_descriptors
from tests.support.mcp.client import Caller, ToolRefusedError
from tests.support.stack import Stack
from tests.support.waiting import await_until

pytestmark = pytest.mark.fault


def _without_descriptors(stack: Stack) -> AbstractContextManager[None]:
    assert stack.daemon is not None
    return without_descriptors(stack.daemon.pid)


@contextmanager
def _stopped(stack: Stack) -> Iterator[None]:
    """The kill switch is on in the block.

    Programs could remove the file ``stop`` in the state directory, so the stop is kept: to end it,
    the daemon is stopped and both files are removed.
    """
    stop = stack.state_dir / "stop"
    stop.touch()
    try:
        yield
    finally:
        _end_daemon(stack)
        stop.unlink()
        kept_stop(stack.state_dir).unlink()
        stack.start_daemon()


@contextmanager
def _away(stack: Stack) -> Iterator[None]:
    _end_daemon(stack)
    try:
        yield
    finally:
        stack.start_daemon()


def _end_daemon(stack: Stack) -> None:
    assert stack.daemon is not None
    stack.daemon.terminate()
    stack.daemon.wait(90)


_CAUSES = {
    "RESOURCE_EXHAUSTED": (_without_descriptors, True),
    "HOST_STOPPED": (_stopped, False),
    "CONTROLLER_OFFLINE": (_away, True),
}


_TOOLS = {
    "start_interactive_command": "session_id",
    "execute_command": "session_id",
    "start_command": "sessionId",
}


@pytest.mark.timeout(200)
@pytest.mark.parametrize("code", _CAUSES)
async def test_a_refused_start_can_succeed_under_its_id(own_stack: Stack, code: str) -> None:
    cause, is_retryable = _CAUSES[code]
    ids = {
        tool: {"requestId" if name == "sessionId" else "request_id": str(uuid4())}
        for tool, name in _TOOLS.items()
    }
    async with own_stack.caller() as caller:
        with cause(own_stack):
            if cause is _away:
                await await_until(lambda: _is_offline(caller), 60, "the host to count as offline")
            for tool in [*_TOOLS, *_TOOLS]:
                refused = await caller.refusal(tool, command="true", **ids[tool])
                assert (refused["code"], refused["retryable"]) == (code, is_retryable)
        for tool, name in _TOOLS.items():
            first = await _await_result(caller, tool, {"command": "true", **ids[tool]})
            again = await caller.call(tool, command="true", **ids[tool])
            assert again[name] == first[name]


async def _is_offline(caller: Caller) -> bool:
    (host,) = (await caller.call("list_controllers"))["controllers"]
    return not host["online"]


async def _await_result(caller: Caller, tool: str, arguments: dict[str, Any]) -> dict[str, Any]:
    """Repeat the refused call until it succeeds."""

    async def result() -> dict[str, Any] | None:
        try:
            return await caller.call(tool, **arguments)
        except ToolRefusedError:
            return None

    found: dict[str, Any] = await await_until(result, 60, "the start to be let through")
    return found
