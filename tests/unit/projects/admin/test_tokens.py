"""API tokens in the admin: made by whom may, shown once, revoked after a question."""

import re
from typing import Any

import pytest
from asgiref.sync import async_to_sync
from django.contrib import admin
from django.contrib.admin.models import LogEntry
from django.contrib.auth import get_user_model
from django.contrib.auth.models import Permission
from django.contrib.sessions.models import Session
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest
from django.test import Client, RequestFactory

from projects.accounts.credentials import api_token_create
from projects.accounts.token_check import authenticate_api_token
from projects.errors.access import Unauthenticated
from projects.models import ApiToken, AuditEvent, Project

pytestmark = pytest.mark.django_db(transaction=True)

LIST = "/admin/projects/apitoken/"


@pytest.fixture
def project() -> Project:
    return Project.objects.create(name="acme")


def staff(*permissions: str, project: Project | None = None, name: str = "op") -> Client:
    user = get_user_model().objects.create_user(name, password="x", is_staff=True)
    user.user_permissions.set(Permission.objects.filter(codename__in=permissions))
    if project is not None:
        project.members.add(user)
    client = Client()
    client.force_login(user)
    return client


def _form(project: Project, **fields: object) -> dict[str, object]:
    return {
        "project": str(project.pk),
        "name": "agent",
        "scopes": ["session:read", "session:start"],
        "days": "7",
        "is_mine": "on",
        "approvals": "auto",
        **fields,
    }


def test_a_token_is_shown_once_and_kept_nowhere(project: Project) -> None:
    client = staff("view_apitoken", "manage_apitoken", project=project)
    answer = client.post(f"{LIST}add/", _form(project, starts_per_minute="9"))
    assert "no-store" in answer["Cache-Control"]
    (text,) = re.findall(r"hl_[0-9a-f]{16}_[\w-]{43}", answer.content.decode())
    caller = async_to_sync(authenticate_api_token)(f"Bearer {text}")
    assert (caller.project_id, caller.scopes, caller.starts_per_minute) == (
        project.pk,
        {"session:read", "session:start"},
        9,
    )
    row = ApiToken.objects.get()
    assert (row.owner is not None and row.owner.username, row.expires_at is None) == ("op", False)
    assert AuditEvent.objects.get(action="api_token.create").actor == "admin:op"
    kept = [str(list(model.objects.values())) for model in (ApiToken, AuditEvent, LogEntry)] + [
        str(s.get_decoded()) for s in Session.objects.all()
    ]
    assert not [found for found in kept if text[-43:] in found]
    for page in (LIST, f"{LIST}{row.pk}/change/"):
        assert text[-43:] not in client.get(page).content.decode()
        assert row.digest not in client.get(page).content.decode()


def test_making_and_revoking_need_their_permission_and_the_project(project: Project) -> None:
    other = Project.objects.create(name="other")
    row, _ = api_token_create(project=project, name="agent")
    looker = staff("view_apitoken", project=project)
    assert looker.get(f"{LIST}add/").status_code == 403
    assert looker.post(f"{LIST}add/", _form(project)).status_code == 403
    chosen = {"action": "revoke", "_selected_action": str(row.pk), "confirmed": "yes"}
    looker.post(LIST, chosen)
    get_user_model().objects.get().delete()
    manager = staff("view_apitoken", "manage_apitoken", project=other)
    assert b"valid choice" in manager.post(f"{LIST}add/", _form(project)).content
    assert b"valid choice" in manager.post(f"{LIST}add/", _form(other, scopes=["admin:*"])).content
    manager.post(LIST, chosen)
    row.refresh_from_db()
    assert (row.revoked_at, ApiToken.objects.count()) == (None, 1)


def _request(username: str, *permissions: str) -> HttpRequest:
    """A request of a member of staff, or of a superuser if no permission is named."""
    request = RequestFactory().post(f"{LIST}add/")
    users = get_user_model().objects
    request.user = users.create_user(username, is_staff=True, is_superuser=not permissions)
    request.user.user_permissions.set(Permission.objects.filter(codename__in=permissions))
    return request


def test_the_open_page_of_a_superuser_gives_nobody_more_scopes(project: Project) -> None:
    page: Any = admin.site.get_model_admin(ApiToken)
    manager = _request("op", "manage_apitoken", "view_all_projects")
    theirs = page.get_form(manager)
    supers = page.get_form(_request("root"))
    given = _form(project, scopes=["admin:*"])
    assert supers(given).is_valid()
    assert "scopes" in theirs(given).errors
    assert "session:kill" in supers(given)["scopes"].initial
    assert "session:kill" not in theirs(given)["scopes"].initial


def test_scopes_are_checked_again_before_the_token_is_made(project: Project) -> None:
    page: Any = admin.site.get_model_admin(ApiToken)
    form = page.get_form(_request("root"))(_form(project, scopes=["admin:*"]))
    assert form.is_valid()
    with pytest.raises(PermissionDenied):
        page.save_model(_request("op", "manage_apitoken"), form.instance, form, False)
    assert not ApiToken.objects.exists()


def test_a_token_is_revoked_after_a_question_and_its_next_call_is_refused(
    admin_client: Client, project: Project
) -> None:
    row, text = api_token_create(project=project, name="<b>agent")
    chosen = {"action": "revoke", "_selected_action": str(row.pk)}
    asked = admin_client.post(LIST, chosen).content.decode()
    assert "Yes, revoke" in asked
    assert "<b>agent" not in asked
    async_to_sync(authenticate_api_token)(f"Bearer {text}")
    answer = admin_client.post(LIST, {**chosen, "confirmed": "yes"}, follow=True).content.decode()
    assert "Revoked: &lt;b&gt;agent" in answer
    with pytest.raises(Unauthenticated):
        async_to_sync(authenticate_api_token)(f"Bearer {text}")
    assert AuditEvent.objects.get(action="api_token.revoke").actor == "admin:admin"
    assert (
        b"None of the selected tokens is active"
        in admin_client.post(LIST, chosen, follow=True).content
    )
