"""create_project, create_api_token and create_controller: what an operator types before anything
runs.
"""

from io import StringIO
from typing import Any

import pytest
from django.contrib.auth import get_user_model
from django.core.management import CommandError, call_command

from projects.accounts.authentication import AGENT_SCOPES
from projects.models import (
    ApiToken,
    AuditEvent,
    Controller,
    ControllerCredential,
    EnrolmentCode,
    Project,
)

pytestmark = pytest.mark.django_db


def _printed(command: str, *arguments: str, **options: Any) -> str:
    out = StringIO()
    call_command(command, *arguments, stdout=out, **options)
    return out.getvalue().strip()


def test_a_project_is_created_with_its_limit_and_members() -> None:
    user = get_user_model().objects.create(username="ada")
    project_id = _printed(
        "create_project", "lab", "--max-interactive-sessions", "3", "--member", "ada"
    )
    project = Project.objects.get(id=project_id)
    assert (project.name, project.max_interactive_sessions, list(project.members.all())) == (
        "lab",
        3,
        [user],
    )
    assert AuditEvent.objects.get().action == "project.create"


@pytest.mark.parametrize("arguments", [["lab"], ["not a slug"], ["other", "--member", "nobody"]])
def test_a_project_that_cannot_be_is_refused_and_nothing_is_left(arguments: list[str]) -> None:
    Project.objects.create(name="lab")
    with pytest.raises(CommandError):
        call_command("create_project", *arguments)
    assert Project.objects.count() == 1


def test_a_new_token_is_printed_and_has_agent_scopes_or_those_asked_for() -> None:
    Project.objects.create(name="lab")
    token = _printed("create_api_token", "lab", "--days", "7")
    row = ApiToken.objects.get()
    assert token.startswith(f"hl_{row.key_id}_")
    assert row.scopes == sorted(AGENT_SCOPES)
    assert row.expires_at is not None
    _printed("create_api_token", "lab", "--name", "reader", "--scope", "session:read")
    assert ApiToken.objects.get(name="reader").scopes == ["session:read"]


def test_a_host_is_enrolled_once_and_may_get_another_credential() -> None:
    Project.objects.create(name="lab")
    first = _printed("create_controller", "lab", "host")
    with pytest.raises(CommandError, match="--new-credential"):
        call_command("create_controller", "lab", "host")
    second = _printed("create_controller", "lab", "host", "--new-credential")
    assert first.startswith("ctl_")
    assert first != second
    assert (Controller.objects.count(), ControllerCredential.objects.count()) == (1, 2)


@pytest.mark.parametrize(
    "arguments",
    [
        ["create_api_token", "nowhere"],
        ["create_controller", "nowhere", "host"],
        ["create_controller", "lab", "x", "--new-credential"],
    ],
)
def test_what_does_not_exist_is_named(arguments: list[str]) -> None:
    Project.objects.create(name="lab")
    with pytest.raises(CommandError):
        call_command(*arguments)


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        (["create_project", "other", "--max-interactive-sessions", "-1"], "max interactive"),
        (["create_api_token", "lab", "--days", "0"], "--days"),
        (["create_api_token", "lab", "--days", "-5"], "--days"),
        (["create_api_token", "lab", "--days", "99999999999999999999"], "--days"),
        (["create_api_token", "lab", "--name", ""], "name: "),
        (["create_api_token", "lab", "--name", "x" * 65], "name: "),
        (["create_api_token", "lab", "--starts-per-minute", "-1"], "starts per minute: "),
        (["create_api_token", "lab", "--input-bytes-per-minute", "-1"], "input bytes per minute: "),
        (["create_enrolment_code", "lab", "host", "--minutes", "-1"], "minutes"),
        (["create_enrolment_code", "lab", "host", "--minutes", "nan"], "minutes"),
        (["create_enrolment_code", "lab", "host", "--minutes", "inf"], "minutes"),
        (["create_enrolment_code", "lab", "host", "--minutes", "1e300"], "minutes"),
    ],
)
def test_a_value_that_cannot_be_is_refused_by_name(arguments: list[str], named: str) -> None:
    Project.objects.create(name="lab")
    with pytest.raises(CommandError, match=named):
        call_command(*arguments)
    assert not ApiToken.objects.exists()
    assert not EnrolmentCode.objects.exists()
