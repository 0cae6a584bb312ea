"""What people change in the admin is stored together with its audit row, or not at all."""

from collections.abc import Callable
from typing import Any

import pytest
from django.contrib.auth.models import Group, User
from django.db import DatabaseError
from django.test import Client
from django.utils import timezone

from projects.accounts.credentials import api_token_create, controller_credential_create
from projects.attention.targets import Way, target_delete, target_save
from projects.enrolment.codes import enrolment_code_create
from projects.models import (
    ApiToken,
    AttentionTarget,
    AuditEvent,
    Controller,
    ControllerCredential,
    EnrolmentCode,
    Project,
    Secret,
)
from projects.secrets.store import secret_set
from projects.secrets.terms import Terms
from tests.support.running.append_only import no_audit_rows

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.sqlite]

_ADDRESS = "https://example.com/hook"
_PROJECT = {
    "name": "lab",
    "max_interactive_sessions": "9",
    "max_pause_minutes": "30",
    "approvals": "auto",
    "keeps_output": "on",
}


def _kept() -> list[object]:
    """Everything that the actions below change."""
    models = (
        *(User, Group, User.user_permissions.through, Group.permissions.through),
        *(Project, Project.members.through, ApiToken, Secret, AttentionTarget, EnrolmentCode),
        *(Controller, ControllerCredential, AuditEvent),
    )
    return [list(model._default_manager.order_by("pk").values()) for model in models]


def _target(host: Controller, name: str = "ops") -> AttentionTarget:
    target = AttentionTarget(project=host.project, name=name, way=Way.WEBHOOK)
    target_save(target, address=_ADDRESS, key=None, actor="test")
    return target


def _post(place: str, **form: Any) -> Callable[[Client, Controller], object]:
    return lambda client, _host: client.post(place, form)


def _act(place: str, action: str, model: Any) -> Callable[[Client, Controller], object]:
    """Does an action of a list with all rows, but for the person's own."""

    def act(client: Client, _host: Controller) -> object:
        chosen = model.objects.all() if model is not User else User.objects.filter(username="ada")
        form = {
            "action": action,
            "_selected_action": [str(row.pk) for row in chosen],
            "confirmed": "yes",
            "post": "yes",
        }
        return client.post(place, form)

    return act


def _change(kind: str, model: Any, **form: Any) -> Callable[[Client, Controller], object]:
    """Posts the change form of the one row of that model, or of the user ``ada``."""

    def act(client: Client, _host: Controller) -> object:
        chosen = model.objects.all() if model is not User else User.objects.filter(username="ada")
        return client.post(f"/admin/{kind}/{chosen.get().pk}/change/", form)

    return act


def _new_secret(client: Client, host: Controller) -> object:
    form = {"project": str(host.project_id), "name": "more", "any_controller": "on"}
    terms = {"allowed_commands": '["sudo"]', "value": "correct horse"}
    return client.post("/admin/projects/secret/add/", form | terms)


def _new_token(client: Client, host: Controller) -> object:
    form = {"project": str(host.project_id), "name": "more", "approvals": "auto"}
    return client.post("/admin/projects/apitoken/add/", form | {"scopes": ["session:read"]})


def _joined(client: Client, _host: Controller) -> object:
    """Makes ada a member of the project, and changes nothing else."""
    members = {"members": [str(User.objects.get(username="ada").pk)]}
    page = f"/admin/projects/project/{Project.objects.get().pk}/change/"
    return client.post(page, _PROJECT | {"max_interactive_sessions": "1"} | members)


def _password(client: Client, _host: Controller) -> object:
    new = {"usable_password": "true", "password1": "long-and-new-9", "password2": "long-and-new-9"}
    user = User.objects.get(username="ada")
    return client.post(f"/admin/auth/user/{user.pk}/password/", new)


def _change_target(_client: Client, host: Controller) -> object:
    target = AttentionTarget.objects.get()
    return target_save(target, address="https://example.org/", key=None, actor="test")


@pytest.mark.parametrize(
    "act",
    [
        pytest.param(lambda _client, host: _target(host, "more"), id="target-add"),
        pytest.param(_change_target, id="target-change"),
        pytest.param(
            lambda *_: target_delete(AttentionTarget.objects.get(), actor="test"),
            id="target-delete",
        ),
        pytest.param(
            _act("/admin/projects/enrolmentcode/", "withdraw", EnrolmentCode), id="withdraw"
        ),
        pytest.param(_act("/admin/projects/controller/", "dismiss", Controller), id="dismiss"),
        pytest.param(_password, id="password"),
        pytest.param(
            _post(
                "/admin/password_change/",
                old_password="password",
                new_password1="long-and-new-9",
                new_password2="long-and-new-9",
            ),
            id="own-password",
        ),
        pytest.param(_act("/admin/auth/user/", "delete_selected", User), id="user-delete"),
        pytest.param(_act("/admin/auth/group/", "delete_selected", Group), id="group-delete"),
        pytest.param(_change("projects/project", Project, **_PROJECT), id="project"),
        pytest.param(_joined, id="member"),
        pytest.param(
            _post("/admin/projects/project/add/", **_PROJECT | {"name": "more"}), id="project-add"
        ),
        pytest.param(
            _change(
                "auth/user",
                User,
                username="ada",
                is_superuser="on",
                date_joined_0="2026-01-02",
                date_joined_1="03:04:05",
            ),
            id="user-change",
        ),
        pytest.param(
            _post(
                "/admin/auth/user/add/",
                username="bob",
                usable_password="true",
                password1="long-and-new-9",
                password2="long-and-new-9",
            ),
            id="user-add",
        ),
        pytest.param(_post("/admin/auth/group/add/", name="more"), id="group-add"),
        pytest.param(_new_secret, id="secret-add"),
        pytest.param(_act("/admin/projects/secret/", "delete_selected", Secret), id="secret-gone"),
        pytest.param(_new_token, id="token-add"),
        pytest.param(_act("/admin/projects/apitoken/", "revoke", ApiToken), id="token-revoke"),
        pytest.param(_act("/admin/projects/controller/", "revoke", Controller), id="host-revoke"),
        pytest.param(
            _act("/admin/projects/controllercredential/", "revoke", ControllerCredential),
            id="credential-revoke",
        ),
    ],
)
def test_a_change_whose_audit_row_cannot_be_written_is_not_made(
    act: Callable[[Client, Controller], object], admin_client: Client, controller: Controller
) -> None:
    User.objects.create_user("ada", password="password")
    Group.objects.create(name="operators")
    _target(controller)
    enrolment_code_create(project=controller.project, name="web-9")
    Controller.objects.update(
        alarmed_at=timezone.now(), alarm="another daemon", awaits_approval_since=timezone.now()
    )
    Project.objects.update(name="lab")
    api_token_create(project=controller.project, name="agent")
    controller_credential_create(controller=controller)
    secret_set(
        project=controller.project,
        name="sudo",
        value="correct horse",
        terms=Terms(controllers=frozenset({controller.id}), commands=("sudo",)),
        actor="test",
    )
    before = _kept()
    with no_audit_rows(), pytest.raises(DatabaseError):
        act(admin_client, controller)
    assert _kept() == before
    act(admin_client, controller)
    assert _kept() != before


def test_a_code_that_is_withdrawn_twice_is_on_record_once(
    admin_client: Client, controller: Controller
) -> None:
    enrolment_code_create(project=controller.project, name="web-9")
    act = _act("/admin/projects/enrolmentcode/", "withdraw", EnrolmentCode)
    act(admin_client, controller)
    act(admin_client, controller)
    assert AuditEvent.objects.filter(action="enrolment_code.withdraw").count() == 1
