"""Refusals of the command: a code, the next thing to do, and an exit code of its own."""

from datetime import timedelta
from uuid import uuid4

import pytest
from django.core.management import CommandError, call_command
from django.db import OperationalError
from django.utils import timezone

from agent.management.naming import run_named
from agent.models import AgentRun
from projects.management.refusals import refusals
from projects.models import Controller, Project

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def _projects() -> None:
    for name, online_seconds in (("first", 60), ("away", -1)):
        lease = timezone.now() + timedelta(seconds=online_seconds)
        Controller.objects.create(
            project=Project.objects.create(name=name), name=f"{name}-host", lease_expires_at=lease
        )
    Project.objects.create(name="empty")


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (("--project", "nix", "x"), "PROJECT_NOT_FOUND"),
        (("x",), "PROJECT_AMBIGUOUS"),
        (("--project", "first", "--controller", "away-host", "x"), "INVALID_ARGUMENT"),
        (("--project", "first", "--max-steps", "0", "x"), "INVALID_ARGUMENT"),
        (("--project", "first", "--max-seconds", "nan", "x"), "INVALID_ARGUMENT"),
        (("--project", "first", "  "), "INVALID_ARGUMENT"),
        (("--project", "first", "tidy \udcff"), "INVALID_ARGUMENT"),
        (("--project", "first", "--model", "openai:" + "x" * 200, "x"), "INVALID_ARGUMENT"),
        (("--project", "away", "x"), "CONTROLLER_OFFLINE"),
        (("--project", "empty", "x"), "NO_CONTROLLER"),
        (("--follow", "0000"), "RUN_NOT_FOUND"),
    ],
)
def test_what_is_refused_has_a_code_and_says_what_to_do(
    arguments: tuple[str, ...], code: str
) -> None:
    with pytest.raises(CommandError, match=rf"\({code}\)\. \w+") as refused:
        call_command("run_agent", *arguments)
    assert refused.value.returncode == 4
    assert not AgentRun.objects.exists()


@pytest.mark.parametrize(
    ("problem", "remedy"),
    [
        ("no such table: projects_project", "Start a server first"),
        ("there is no database file data/db.sqlite3", "Start a server first"),
        ("attempt to write a readonly database", "Check DATABASE_URL"),
    ],
)
def test_a_database_that_cannot_be_used_is_refused_with_a_remedy(problem: str, remedy: str) -> None:
    expected = rf"\(STORAGE_UNAVAILABLE\)\. {remedy}"
    with pytest.raises(CommandError, match=expected) as refused, refusals():
        raise OperationalError(problem)
    assert refused.value.returncode == 4


def test_the_beginning_of_an_id_names_a_run_if_it_is_the_only_one() -> None:
    limits = {
        "max_steps": 1,
        "max_tokens": 1,
        "max_cost_cents": 1,
        "max_run_seconds": 1.0,
        "output_bytes": 1,
    }
    project = Project.objects.get(name="first")
    one, other = (
        AgentRun.objects.create(id=f"{head}{str(uuid4())[2:]}", project=project, **limits)
        for head in ("aa", "ab")
    )
    assert run_named("AA") == AgentRun.objects.get(id=one.id).id
    assert run_named(str(other.id)[:13]) == AgentRun.objects.get(id=other.id).id
    with pytest.raises(CommandError, match="RUN_NOT_FOUND"), refusals():
        run_named("a")


def test_hosts_that_are_all_away_are_named_one_by_one() -> None:
    project = Project.objects.get(name="away")
    Controller.objects.create(
        project=project, name="second-host", lease_expires_at=timezone.now() - timedelta(seconds=1)
    )
    with pytest.raises(CommandError, match="the hosts away-host and second-host are offline"):
        call_command("run_agent", "--project", "away", "x")
