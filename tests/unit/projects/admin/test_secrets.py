"""Secrets in the admin: a value goes in and never comes out; who may what, and of which project."""

from typing import Any

import pytest
from django.contrib.auth import get_user_model
from django.contrib.auth.models import Permission
from django.test import Client

from projects.models import AuditEvent, Controller, Project, Secret
from projects.secrets.store import secret_open, secret_set
from projects.secrets.terms import Terms

pytestmark = pytest.mark.django_db

VALUE = "correct horse battery"
LIST, ADD = "/admin/projects/secret/", "/admin/projects/secret/add/"


@pytest.fixture
def controller() -> Controller:
    return Controller.objects.create(project=Project.objects.create(name="lab"), name="host")


@pytest.fixture
def secret(controller: Controller) -> Secret:
    return secret_set(
        project=controller.project,
        name="sudo",
        value=VALUE,
        terms=Terms(controllers={controller.id}),
        actor="operator",
    )


def _page(secret: Secret, page: str = "change") -> str:
    return f"{LIST}{secret.pk}/{page}/"


def _filled(controller: Controller, **fields: Any) -> dict[str, Any]:
    return {
        "controllers": [str(controller.pk)],
        "allowed_commands": '["sudo"]',
        "value": "",
        **fields,
    }


def _member(project: Project, *permissions: str) -> Client:
    user = get_user_model().objects.create_user("ada", password="x", is_staff=True)
    user.user_permissions.set(Permission.objects.filter(codename__in=permissions))
    project.members.add(user)
    client = Client()
    client.force_login(user)
    return client


def _value(controller: Controller, name: str = "sudo") -> bytes:
    return secret_open(
        controller.project_id, name, controller_id=controller.id, command="sudo id"
    ).value


def test_a_secret_is_made_changed_and_deleted_and_each_is_on_record(
    admin_client: Client, controller: Controller
) -> None:
    made = admin_client.post(
        ADD,
        {"project": str(controller.project_id), "name": "sudo", **_filled(controller, value=VALUE)},
    )
    assert made.status_code == 302
    assert _value(controller) == VALUE.encode()
    secret = Secret.objects.get()
    assert admin_client.post(_page(secret), _filled(controller)).status_code == 302
    assert _value(controller) == VALUE.encode()
    assert (
        admin_client.post(_page(secret), _filled(controller, value="another value")).status_code
        == 302
    )
    assert _value(controller) == b"another value"
    assert admin_client.post(_page(secret, "delete"), {"post": "yes"}).status_code == 302
    assert not Secret.objects.exists()
    actions = list(AuditEvent.objects.order_by("id").values_list("action", flat=True))
    assert actions == ["secret.set", "secret.change", "secret.set", "secret.delete"]


@pytest.mark.parametrize(
    "typed", ["{}", '""', "false", "0", '"sudo"', "[1]", r'["\ud800"]', "[" * 100_000, "9" * 5000]
)
def test_what_is_no_list_of_programs_is_not_taken_for_any_program(
    admin_client: Client, controller: Controller, typed: str
) -> None:
    form = _filled(controller, value=VALUE, allowed_commands=typed)
    page = admin_client.post(ADD, {"project": str(controller.project_id), "name": "sudo", **form})
    assert (page.status_code, Secret.objects.count()) == (200, 0)
    assert "allowed_commands" in page.context["adminform"].form.errors


def test_no_page_shows_a_value_or_what_it_is_stored_as(
    admin_client: Client, secret: Secret, controller: Controller
) -> None:
    sealed = bytes(secret.sealed).decode()
    pages = [
        admin_client.get(url)
        for url in (LIST, ADD, _page(secret), _page(secret, "delete"), _page(secret, "history"))
    ]
    pages.append(
        admin_client.post(
            _page(secret), _filled(controller, value="two\nlines-of-it", allowed_commands="no json")
        )
    )
    for page in pages:
        assert page.status_code == 200
        for never in (VALUE, sealed, "lines-of-it"):
            assert never not in page.content.decode()


@pytest.mark.parametrize(
    "wider",
    [
        {"any_controller": "on"},
        {"allowed_commands": "[]"},
        {"allowed_commands": '["sudo", "su"]'},
        {"may_echo": "on"},
    ],
)
def test_terms_that_allow_more_need_the_value_again(
    admin_client: Client, secret: Secret, controller: Controller, wider: dict[str, str]
) -> None:
    assert admin_client.post(_page(secret), _filled(controller)).status_code == 302
    refused = admin_client.post(_page(secret), _filled(controller, **wider))
    assert b"give the value again" in refused.content
    assert _value(controller) == VALUE.encode()
    assert (
        admin_client.post(
            _page(secret), _filled(controller, **wider, value="another value")
        ).status_code
        == 302
    )
    assert _value(controller) == b"another value"


@pytest.mark.parametrize(
    "fields",
    [{"value": ""}, {"value": "\x1b[A"}, {"name": "not a name"}, {"allowed_commands": '{"a": 1}'}],
)
def test_a_secret_that_cannot_be_is_not_made(
    admin_client: Client, controller: Controller, fields: dict[str, str]
) -> None:
    form = {
        "project": str(controller.project_id),
        "name": "sudo",
        **_filled(controller, value=VALUE),
        **fields,
    }
    assert admin_client.post(ADD, form).status_code == 200
    assert not Secret.objects.exists()


def test_a_secret_takes_no_controller_of_another_project(
    admin_client: Client, controller: Controller
) -> None:
    elsewhere = Controller.objects.create(project=Project.objects.create(name="other"), name="host")
    form = {
        "project": str(controller.project_id),
        "name": "sudo",
        **_filled(elsewhere, value=VALUE),
    }
    assert admin_client.post(ADD, form).status_code == 200
    assert not Secret.objects.exists()


@pytest.mark.parametrize(
    ("permission", "expected"), [("", 403), ("view_secret", 403), ("change_secret", 302)]
)
def test_seeing_a_secret_is_not_changing_it(
    secret: Secret, controller: Controller, permission: str, expected: int
) -> None:
    client = _member(controller.project, permission)
    assert (
        client.post(_page(secret), _filled(controller, value="another value")).status_code
        == expected
    )
    assert _value(controller) == (b"another value" if expected == 302 else VALUE.encode())
    page = client.get(_page(secret))
    assert page.status_code == (403 if not permission else 200)
    assert (b'name="value"' in page.content) == (permission == "change_secret")


def test_secrets_of_other_projects_are_not_there(secret: Secret, controller: Controller) -> None:
    other = Project.objects.create(name="other")
    client = _member(other, "view_secret", "add_secret", "change_secret", "delete_secret")
    assert b"sudo" not in client.get(LIST).content
    for page in ("change", "delete"):
        assert client.get(_page(secret, page)).status_code == 302
    assert str(controller.project_id) not in client.get(ADD).content.decode()
    form = {
        "project": str(controller.project_id),
        "name": "mine",
        **_filled(controller, value=VALUE),
    }
    assert client.post(ADD, form).status_code == 200
    assert Secret.objects.count() == 1


def test_the_page_warns_of_a_program_that_runs_others(
    admin_client: Client, controller: Controller
) -> None:
    fields = _filled(controller, value=VALUE, allowed_commands='["git"]')
    fields |= {"project": str(controller.project_id), "name": "token"}
    shown = admin_client.post(ADD, fields, follow=True).content.decode()
    assert "he program git can run others" in shown
