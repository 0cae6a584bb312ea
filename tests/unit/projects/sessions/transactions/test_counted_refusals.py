"""A call that the rules refuse uses the rate of its token, in every tool that has one."""

from datetime import timedelta
from typing import Any
from uuid import UUID, uuid4

import pytest
from django.utils import timezone

from controller_client.protocol.session_state import SessionState
from projects.accounts.authentication import SCOPES, Caller
from projects.models import CommandSession, Project
from projects.storage.access import in_database
from projects.tools.registry import ALL_TOOLS, tool_named
from tests.support.rows import make_controller, make_session

pytestmark = pytest.mark.django_db(transaction=True)

_SHELL = "bash"
_REFUSED = {"command": "rm -r /srv"}
_TYPED = "rm -r /srv\n"
# What each tool that has a rate is given; resize_session types nothing.
_CALLS: dict[str, dict[str, Any]] = {
    "execute_command": _REFUSED,
    "run_command": _REFUSED,
    "start_command": _REFUSED,
    "start_interactive_command": {**_REFUSED, "wait_seconds": 0},
    "send_command_input": {"input_text": _TYPED, "wait_seconds": 0},
    "write_input": {"input": _TYPED},
}


def _session_for(tool: str, *, is_online: bool) -> tuple[UUID, dict[str, str]]:
    """A project that allows bash and echo, and the argument that names a session of it."""
    until = timezone.now() + timedelta(hours=1 if is_online else -1)
    host = make_controller(lease_expires_at=until)
    Project.objects.filter(id=host.project_id).update(allowed_commands=[f"{_SHELL}:shell", "echo"])
    kinds = CommandSession.Kind
    kind = kinds.BACKGROUND if tool == "write_input" else kinds.INTERACTIVE
    session = make_session(host, SessionState.RUNNING, kind=kind, command=_SHELL)
    names = {"send_command_input": "session_id", "write_input": "sessionId"}
    named = {names[tool]: str(session.id)} if tool in names else {}
    return host.project_id, named


async def _codes(tool: str, times: int, *, rate: int, is_online: bool = True) -> list[str]:
    """The codes of refused calls in a row; ``rate`` calls fit in a minute."""
    project_id, named = await in_database(lambda: _session_for(tool, is_online=is_online))
    caller = Caller(
        project_id,
        "token:guesser",
        frozenset(SCOPES),
        token_id=uuid4(),
        starts_per_minute=rate,
        input_bytes_per_minute=rate * len(_TYPED),
    )
    asked = [await tool_named(tool).call({**named, **_CALLS[tool]}, caller) for _ in range(times)]
    return [str(outcome.body["code"]) for outcome in asked]


def test_every_tool_with_a_rate_is_tried() -> None:
    acting = {"session:start", "session:input"}
    with_rate = {tool.name for tool in ALL_TOOLS if acting.intersection(tool.scopes)}
    assert set(_CALLS) == with_rate - {"resize_session"}


# A rate of 200 is taken ahead, some at a time, and one of 2 call by call.
@pytest.mark.parametrize("rate", [2, 200])
@pytest.mark.parametrize("tool", _CALLS)
async def test_calls_against_the_rules_use_up_the_rate(tool: str, rate: int) -> None:
    codes = await _codes(tool, rate + 8, rate=rate)
    assert set(codes[:2]) == {"COMMAND_NOT_ALLOWED"}
    assert codes[-1] == "RATE_LIMITED"


@pytest.mark.parametrize("tool", _CALLS)
async def test_a_call_that_may_come_again_uses_nothing(
    tool: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    allowed = {"command": "echo x", "input_text": "echo x\n", "input": "echo x\n"}
    given = {name: allowed.get(name, value) for name, value in _CALLS[tool].items()}
    monkeypatch.setitem(_CALLS, tool, given)
    assert set(await _codes(tool, 4, rate=2, is_online=False)) == {"CONTROLLER_OFFLINE"}
