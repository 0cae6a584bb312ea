"""A name that is wrong on a command line: every command lists the names there are, and does
nothing.
"""

from uuid import uuid4

import pytest
from django.contrib.auth import get_user_model
from django.core.management import call_command
from django.core.management.base import CommandError

from console.management.commands import make_screens
from projects.accounts.credentials import api_token_create
from projects.management.naming import MAX_LISTED, names_of
from projects.models import AuditEvent, Controller, Project, Secret
from tests.support.rows import make_controller, make_session

pytestmark = pytest.mark.django_db

_MODEL = ("--model", "scripted:demo")


@pytest.fixture(autouse=True)
def _lab() -> None:
    lab = Project.objects.create(name="lab")
    Controller.objects.create(project=lab, name="web1")
    Secret.objects.create(project=lab, name="vault", any_controller=True)
    Project.objects.create(name="empty")


@pytest.mark.parametrize(
    "arguments",
    [
        ("create_api_token", "nix"),
        ("create_controller", "nix", "web2"),
        ("create_enrolment_code", "nix", "web2"),
        ("end_sessions", "nix"),
        ("export_audit", "--project", "nix"),
        ("set_secret", "nix", "vault", "--any-controller"),
        ("set_secret", "nix", "vault", "--delete"),
        ("approve", "nix/web1"),
        ("revoke", "nix/web1"),
        ("run_agent", "--project", "nix", *_MODEL, "task"),
        ("agent_runs", "--project", "nix"),
        ("evaluate_agent", "--project", "nix"),
        ("hosts", "nix"),
    ],
)
def test_a_wrong_project_is_answered_with_the_projects(arguments: tuple[str, ...]) -> None:
    said = _refused(*arguments)
    assert said.startswith("there is no project 'nix'; projects: empty, lab (PROJECT_NOT_FOUND). ")


@pytest.mark.parametrize(
    "arguments",
    [
        ("create_controller", "lab", "nix", "--new-credential"),
        ("create_enrolment_code", "lab", "nix", "--replace"),
        ("end_sessions", "lab", "--controller", "nix"),
        ("set_secret", "lab", "vault", "--controller", "nix"),
        ("set_secret", "lab", "vault", "--controller", "web1", "--controller", "nix"),
        ("approve", "lab/nix"),
        ("revoke", "lab/nix"),
        ("evaluate_agent", "--project", "lab", "--controller", "nix"),
    ],
)
def test_a_wrong_controller_is_answered_with_the_controllers(arguments: tuple[str, ...]) -> None:
    assert _refused(*arguments).startswith(
        "there is no controller 'nix'; controllers: web1 (CONTROLLER_NOT_FOUND). "
    )


def test_a_run_for_a_wrong_controller_is_told_the_controllers() -> None:
    said = _refused("run_agent", "--project", "lab", *_MODEL, "--controller", "nix", "task")
    assert "there is no controller 'nix' in this project; there are: web1" in said


@pytest.mark.parametrize("command", ["create_api_token", "end_sessions"])
def test_an_empty_name_is_the_name_of_no_project(command: str) -> None:
    Project.objects.get(name="empty").delete()
    said = _refused(command, "")
    assert said.startswith("there is no project ''; projects: lab (PROJECT_NOT_FOUND). ")


def test_without_a_name_several_projects_are_listed() -> None:
    assert "several projects: empty, lab (PROJECT_AMBIGUOUS)" in _refused(
        "run_agent", *_MODEL, "task"
    )


def test_a_controller_without_its_project_is_answered_with_both() -> None:
    assert "controllers: lab/web1 (" in _refused("approve", "web1")


def test_what_cannot_be_revoked_is_answered_with_tokens_and_controllers() -> None:
    token, _ = api_token_create(project=Project.objects.get(name="lab"), name="ci", actor="test")
    said = _refused("revoke", "nix")
    assert f"tokens: {token.key_id} (ci) (TOKEN_NOT_FOUND)" in said
    assert "Controllers: lab/web1." in said


def test_a_wrong_secret_is_answered_with_the_secrets() -> None:
    assert "secrets: vault (SECRET_NOT_FOUND)" in _refused("set_secret", "lab", "nix", "--delete")


def test_a_wrong_session_is_answered_with_the_active_ones() -> None:
    session = make_session(make_controller(), state="RUNNING")
    assert f"active sessions: {session.id} (SESSION_NOT_FOUND)" in _refused("take_over", "nix")


@pytest.mark.parametrize("command", ["export_recording", "make_screens"])
def test_a_session_that_is_gone_is_refused(command: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(make_screens, "emulator_command", lambda: ("node",))
    gone = str(uuid4())
    assert _refused(command, gone) == f"there is no session {gone} (SESSION_NOT_FOUND)."


def test_screens_are_not_made_where_no_emulator_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(make_screens, "emulator_command", lambda: None)
    session = make_session(make_controller(), state="EXITED")
    assert "no terminal emulator" in _refused("make_screens", str(session.id))


def test_a_wrong_user_is_answered_with_the_users() -> None:
    get_user_model().objects.create(username="ada")
    assert "users: ada (USER_NOT_FOUND)" in _refused("create_project", "other", "--member", "nix")


def test_a_wrong_task_is_answered_with_the_tasks() -> None:
    assert "tasks: " in (said := _refused("evaluate_agent", "--project", "lab", "nix"))
    assert "git_rebase_conflict" in said


def test_an_audit_log_of_a_wrong_project_is_answered_with_the_projects() -> None:
    api_token_create(project=Project.objects.get(name="lab"), name="ci", actor="test")
    assert "projects: (server), empty, lab (PROJECT_NOT_FOUND)" in _refused(
        "verify_audit", "--project", "nix"
    )


def test_many_names_are_cut_with_their_number() -> None:
    assert names_of(f"host{number:03}" for number in range(MAX_LISTED + 5)).endswith(
        "host019, and 5 more"
    )
    assert names_of(()) == "none"


def _refused(*arguments: str) -> str:
    before = AuditEvent.objects.count(), Secret.objects.count(), Project.objects.count()
    with pytest.raises(CommandError) as refused:
        call_command(*arguments)
    assert refused.value.returncode == 4
    assert (AuditEvent.objects.count(), Secret.objects.count(), Project.objects.count()) == before
    return str(refused.value)
