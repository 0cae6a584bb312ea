"""The history of users and groups is what the audit log says about them."""

from typing import Any

import pytest
from django.contrib.auth.models import Group, Permission, User
from django.test import Client

from projects.admin.parts.history import events_about
from projects.models import Project

pytestmark = pytest.mark.django_db

USERS, GROUPS = "/admin/auth/user/", "/admin/auth/group/"


def _add(client: Client, name: str) -> User:
    new = {"username": name, "usable_password": "true", "password1": "long-and-new-9"}
    client.post(f"{USERS}add/", {**new, "password2": "long-and-new-9"})
    return User.objects.get(username=name)


def _rename(client: Client, user: User, name: str) -> None:
    joined = {"date_joined_0": "2026-01-01", "date_joined_1": "00:00:00"}
    client.post(f"{USERS}{user.pk}/change/", {"username": name, "is_active": "on", **joined})
    user.refresh_from_db()
    assert user.username == name


def _told(row: Any) -> list[tuple[str, str]]:
    """The action and the name in each row of a history, oldest first."""
    events = events_about(row).order_by("id")
    return [(event.action, event.detail.get("user", event.detail.get("group"))) for event in events]


def test_a_user_has_the_rows_of_all_its_names_and_of_nobody_else(admin_client: Client) -> None:
    gone = _add(admin_client, "ada")
    admin_client.post(f"{USERS}{gone.pk}/delete/", {"post": "yes"})
    user = _add(admin_client, "ada")
    _rename(admin_client, user, "grace")
    other = _add(admin_client, "ada")
    _rename(admin_client, user, "lin")
    names = {"ada", "grace", "lin"}
    told = _told(user)
    assert [action for action, _ in told].count("user.create") == 1
    assert {name for _, name in told} == names
    assert [name for action, name in told if action == "user.create"] == ["ada"]
    assert told[0][0] == "user.create"
    assert {name for _, name in _told(other)} == {"ada"}
    assert "user.delete" not in {action for action, _ in told + _told(other)}


def test_a_renamed_group_keeps_its_history(admin_client: Client) -> None:
    admin_client.post(f"{GROUPS}add/", {"name": "night shift"})
    group = Group.objects.get(name="night shift")
    admin_client.post(f"{GROUPS}{group.pk}/change/", {"name": "day shift"})
    group.refresh_from_db()
    assert _told(group) == [("group.create", "night shift"), ("group.change", "day shift")]
    assert "group.create" in admin_client.get(f"{GROUPS}{group.pk}/history/").text


def test_the_servers_chain_is_not_for_staff_of_one_project(client: Client) -> None:
    project = Project.objects.create(name="acme")
    user = User.objects.create_user("op", is_staff=True)
    rights = Permission.objects.filter(codename__in=["view_user", "view_auditevent"])
    user.user_permissions.set(rights)
    project.members.add(user)
    client.force_login(user)
    assert "You may not read" in client.get(f"{USERS}{user.pk}/history/").text
    user.user_permissions.add(Permission.objects.get(codename="view_all_projects"))
    assert "You may not read" not in client.get(f"{USERS}{user.pk}/history/").text
