"""A token that was revoked between two calls does nothing any more, whatever tool it calls."""

from typing import Any, Final
from uuid import uuid4

import pytest
from django.apps import apps

from projects.accounts import token_check
from projects.enrolment.revocation import api_token_revoke
from projects.models import ApiToken, RateMeter
from projects.storage.access import in_database
from projects.tools.registry import ALL_TOOLS
from tests.support.hosts.acting_host import ActingHost
from tests.support.mcp.requests import Answer, modern, request

pytestmark = pytest.mark.django_db(transaction=True)

ARGUMENTS: Final[dict[str, dict[str, Any]]] = {
    "execute_command": {"command": "true"},
    "start_interactive_command": {"command": "cat"},
    "send_command_input": {"session_id": "S", "input_text": "x\n"},
    "start_command": {"command": "true"},
    "read_output": {"sessionId": "S"},
    "write_input": {"sessionId": "S", "input": "x\n"},
    "stop_command": {"sessionId": "S"},
    "run_command": {"command": "true"},
    "query_command_status": {"token": "S"},
    "start_session_monitor": {"session_id": "m", "session_type": "ssh", "log_file": "/x.log"},
    "get_session_updates": {"session_id": "m"},
    "stop_session_monitor": {"session_id": "m"},
    "list_session_monitors": {},
    "read_session_output": {"session_id": "S"},
    "search_session_output": {"session_id": "S", "pattern": "x"},
    "get_session": {"session_id": "S"},
    "list_sessions": {},
    "list_controllers": {},
    "resize_session": {"session_id": "S", "cols": 90, "rows": 30},
}


def _rows() -> dict[str, list[Any]]:
    """Every row of ours but the meters of wrong secrets."""
    return {
        model.__name__: list(model.objects.order_by("pk").values())
        for model in apps.get_app_config("projects").get_models()
        if model is not RateMeter
    }


async def _call(
    bearer: dict[str, str], tool: str, arguments: dict[str, Any], era: str = "new"
) -> Answer:
    body, headers = modern(tool, arguments)
    if era == "old":
        del body["params"]["_meta"]
        headers = {}
    return await request(body, headers={**bearer, **headers})


@pytest.mark.parametrize("era", ["old", "new"])
async def test_no_tool_acts_for_a_token_that_was_revoked_since_its_last_call(
    bearer: dict[str, str], host: ActingHost, settings: Any, era: str
) -> None:
    settings.LOGIN_FAILURES_PER_MINUTE = 0
    started = await _call(bearer, "start_interactive_command", {"command": "cat"})
    session_id = started.json["result"]["structuredContent"]["session_id"]
    remembered = dict(token_check._remembered)
    token = await in_database(ApiToken.objects.get)
    await in_database(api_token_revoke, token=token, actor="admin:a")
    before, commands = await in_database(_rows), len(host.commands)
    assert set(ARGUMENTS) == {tool.name for tool in ALL_TOOLS}
    for tool in ALL_TOOLS:
        given = {
            name: session_id if value == "S" else value
            for name, value in ARGUMENTS[tool.name].items()
        }
        assert tool.accepts(given), tool.name
        for arguments in (given, {"no_such_argument": str(uuid4())}):
            # A refusal forgets the token.
            token_check._remembered.update(remembered)
            answer = await _call(bearer, tool.name, arguments, era)
            assert answer.status == 401, tool.name
            assert answer.headers["www-authenticate"].startswith("Bearer")
            assert answer.json["error"]["data"]["code"] == "UNAUTHENTICATED"
    assert await in_database(_rows) == before
    assert len(host.commands) == commands
