"""What an operator changes holds from the next call on, for a caller that has called before too."""

import json
from collections.abc import Callable
from typing import Any

import pytest
from django.contrib.auth.models import User

from projects.models import ApiToken, AuditEvent, CommandSession, Project
from projects.storage.access import in_database
from tests.support.hosts.acting_host import ActingHost
from tests.support.mcp.requests import call, result_of

pytestmark = pytest.mark.django_db(transaction=True)

START = {"command": "cat", "wait_seconds": 0}


async def _changed(model: Any, **fields: object) -> None:
    await in_database(lambda: model.objects.update(**fields))


async def _code(bearer: dict[str, str], tool: str, **arguments: object) -> str:
    """The code of the error that a call is answered with; empty if it was done."""
    answer = (await call(bearer, tool, arguments)).json
    if "error" in answer:
        return str(answer["error"]["data"]["code"])
    result = answer["result"]
    return str(json.loads(result["content"][0]["text"])["code"]) if result.get("isError") else ""


@pytest.mark.parametrize(
    ("of_project", "of_token", "is_held"),
    [
        ("auto", "auto", False),
        ("auto", "ask-risky", True),
        ("ask-risky", "auto", True),
        ("ask-all", "auto", True),
        ("auto", "ask-all", True),
        ("ask-risky", "ask-all", True),
        ("auto", "a policy of later", True),
        ("a policy of later", "auto", True),
    ],
)
async def test_the_strictest_policy_holds_from_the_next_call_on(
    bearer: dict[str, str], host: ActingHost, of_project: str, of_token: str, *, is_held: bool
) -> None:
    await _changed(Project, max_interactive_sessions=9)
    assert await _code(bearer, "start_interactive_command", **START) == ""
    await _changed(Project, approvals=of_project)
    await _changed(ApiToken, approvals=of_token)
    line = START | {"command": "rm x"}
    held = await _code(bearer, "start_interactive_command", **line)
    assert held == ("APPROVAL_PENDING" if is_held else "")
    assert await in_database(CommandSession.objects.count) == (1 if is_held else 2)
    await _changed(Project, approvals="auto")
    await _changed(ApiToken, approvals="auto")
    assert await _code(bearer, "start_interactive_command", **line) == ""


async def test_a_list_of_commands_holds_from_the_next_start_and_input_on(
    bearer: dict[str, str], host: ActingHost
) -> None:
    await _changed(Project, max_interactive_sessions=9)
    shell = await result_of(bearer, "start_interactive_command", START | {"command": "bash"})
    typed = {"session_id": shell["session_id"], "input_text": "id\n", "wait_seconds": 0}
    assert await _code(bearer, "send_command_input", **typed) == ""
    for listed, is_refused in ((["bash:shell", "cat"], True), ([], True), (None, False)):
        await _changed(Project, allowed_commands=listed)
        expected = "COMMAND_NOT_ALLOWED" if is_refused else ""
        assert await _code(bearer, "send_command_input", **typed) == expected
        start = START | {"command": "id"}
        assert await _code(bearer, "start_interactive_command", **start) == expected
    await _changed(Project, allowed_directories=["/srv"])
    start = START | {"cwd": "/etc"}
    assert await _code(bearer, "start_interactive_command", **start) == "CWD_NOT_ALLOWED"


async def test_without_a_list_the_token_needs_the_scope_for_any_program(
    bearer: dict[str, str], host: ActingHost
) -> None:
    await _changed(Project, allowed_commands=["cat"], max_interactive_sessions=9)
    await _changed(ApiToken, scopes=["session:start"])
    assert await _code(bearer, "start_interactive_command", **START) == ""
    await _changed(Project, allowed_commands=None)
    assert await _code(bearer, "start_interactive_command", **START) == "SCOPE_MISSING"
    await _changed(ApiToken, scopes=["session:start", "shell:any"])
    assert await _code(bearer, "start_interactive_command", **START) == ""
    await _changed(ApiToken, scopes=["session:read"])
    assert await _code(bearer, "start_interactive_command", **START) == "SCOPE_MISSING"


def _leave(project: Project, owner: User) -> None:
    project.members.remove(owner)


def _rest(_project: Project, owner: User) -> None:
    owner.is_active = False
    owner.save()


def _go(_project: Project, owner: User) -> None:
    owner.delete()


@pytest.mark.parametrize("end", [_leave, _rest, _go])
async def test_who_leaves_is_out_with_the_token_from_the_next_call_on(
    bearer: dict[str, str], host: ActingHost, end: Callable[[Project, User], None]
) -> None:
    def bind() -> tuple[Project, User]:
        project, owner = Project.objects.get(), User.objects.create_user("ada")
        project.members.add(owner)
        ApiToken.objects.update(owner=owner)
        return project, owner

    project, owner = await in_database(bind)
    assert await _code(bearer, "start_interactive_command", **START) == ""
    rows = await in_database(AuditEvent.objects.count)
    await in_database(end, project, owner)
    for tool in ("start_interactive_command", "list_sessions"):
        assert await _code(bearer, tool, **(START if tool[0] == "s" else {})) == "UNAUTHENTICATED"
    assert await in_database(AuditEvent.objects.count) == rows
    assert await in_database(CommandSession.objects.count) == 1
