"""What a project allows is changed on its page: each change is on record, or refused."""

from typing import Any

import pytest
from django.contrib import admin
from django.contrib.auth import get_user_model
from django.http import HttpResponse
from django.test import Client

from projects.models import AuditEvent, Project
from projects.policy.command_rules import rules_of

pytestmark = pytest.mark.django_db

FORM = {
    "name": "lab",
    "max_interactive_sessions": "1",
    "max_pause_minutes": "30",
    "approvals": "auto",
    "keeps_output": "on",
}


@pytest.fixture
def project() -> Project:
    return Project.objects.create(name="lab")


def _posted(client: Client, project: Project, **fields: str) -> Any:
    page = f"/admin/projects/project/{project.pk}/change/"
    answer: Any = client.post(page, FORM | fields)
    project.refresh_from_db()
    return answer


CHANGES = [
    ("name", "acme", "lab", "acme"),
    ("max_interactive_sessions", "5", 1, 5),
    ("default_lifetime_seconds", "60", None, 60),
    ("max_lifetime_seconds", "600", None, 600),
    ("max_pause_minutes", "0", 30, 0),
    ("approvals", "ask-all", "auto", "ask-all"),
    ("run_approvals", "ask-risky", "", "ask-risky"),
    ("wants_four_eyes", "on", False, True),
    ("allowed_commands", '["git"]', None, ["git"]),
    ("allowed_commands", "[]", None, []),
    ("allowed_directories", '["/srv"]', None, ["/srv"]),
    ("allowed_directories", "[]", None, []),
    ("session_limits", '{"processes": 9, "memory_bytes": null}', None, None),
    ("strict_seconds", "7", None, 7),
    ("keeps_output", "", True, False),
    ("output_retention_seconds", "0", None, 0),
    ("session_retention_seconds", "60", None, 60),
    ("attention_seconds", '{"secret_wanted": 5}', None, {"secret_wanted": 5}),
    ("members", "", [], ["admin"]),
]


@pytest.mark.parametrize(("name", "typed", "before", "after"), CHANGES)
def test_each_change_of_what_is_allowed_is_on_record(
    admin_client: Client, project: Project, name: str, typed: str, before: Any, after: Any
) -> None:
    if name == "members":
        typed = str(get_user_model().objects.get().pk)
    if name == "session_limits":
        after = {"processes": 9, "memory_bytes": None}
    assert _posted(admin_client, project, **{name: typed}).status_code == 302
    row = AuditEvent.objects.get(action="project.change")
    assert (row.actor, row.project_id) == ("admin:admin", project.pk)
    assert row.detail == {"before": {name: before}, "after": {name: after}}


def test_the_changes_above_are_those_that_the_page_offers() -> None:
    page: Any = admin.site.get_model_admin(Project)
    offered = set(page.fields) - set(page.readonly_fields)
    assert {name for name, *_ in CHANGES} == offered


@pytest.mark.parametrize(
    ("name", "typed"),
    [
        ("allowed_commands", "{}"),
        ("allowed_commands", "[" * 100_000),
        ("session_limits", '{"processes": %s}' % ("9" * 5000)),
        ("allowed_directories", '""'),
        ("allowed_directories", '["/srv/../etc"]'),
        ("session_limits", '""'),
        ("attention_seconds", "[]"),
        ("attention_seconds", '{"secret_wanted": NaN}'),
        ("approvals", "never"),
        ("approvals", ""),
        ("run_approvals", "never"),
        ("strict_seconds", "0"),
        ("max_interactive_sessions", "-1"),
        ("max_lifetime_seconds", "0"),
        ("max_lifetime_seconds", "604801"),
        ("default_lifetime_seconds", "86401"),
    ],
)
def test_what_no_host_could_be_told_is_refused_and_changes_nothing(
    admin_client: Client, project: Project, name: str, typed: str
) -> None:
    answer: HttpResponse = _posted(admin_client, project, **{name: typed})
    assert (answer.status_code, name in answer.context["adminform"].form.errors) == (200, True)
    assert getattr(project, name) == getattr(Project(), name)
    assert not AuditEvent.objects.exists()


@pytest.mark.parametrize("empty", ["", "null"])
def test_an_empty_box_means_the_setting(
    admin_client: Client, project: Project, settings: Any, empty: str
) -> None:
    settings.ALLOWED_COMMANDS, settings.ALLOWED_DIRECTORIES = ["sleep"], ["/srv"]
    for typed, commands, directories in (("[]", [], []), (empty, ["sleep"], ["/srv"])):
        both = {"allowed_commands": typed, "allowed_directories": typed}
        assert _posted(admin_client, project, **both).status_code == 302
        rules = rules_of(project.pk).project
        assert (rules.commands, rules.directories) == (commands, directories)
