"""Users in the admin: no form gives anybody rights that its editor lacks."""

from typing import Any

import pytest
from django.contrib.auth.models import Group, Permission, User
from django.test import Client

from projects.models import ApiToken, AuditEvent, Project

pytestmark = pytest.mark.django_db

USERS = "/admin/auth/user/"


def _user(name: str, *permissions: str, projects: tuple[Project, ...] = (), **fields: Any) -> User:
    user = User.objects.create_user(name, password="x", is_staff=True, **fields)
    user.user_permissions.set(Permission.objects.filter(codename__in=permissions))
    for project in projects:
        project.members.add(user)
    return user


def _client(user: User) -> Client:
    client = Client()
    client.force_login(user)
    return client


def _form(user: User, **fields: Any) -> dict[str, Any]:
    return {
        "username": user.username,
        "first_name": "",
        "last_name": "",
        "email": "",
        "is_active": "on",
        **fields,
    }


def _password(client: Client, user: User) -> int:
    new = {
        "usable_password": "true",
        "password1": "something-long-and-new",
        "password2": "something-long-and-new",
    }
    return client.post(f"{USERS}{user.pk}/password/", new).status_code


@pytest.fixture
def a() -> Project:
    return Project.objects.create(name="a")


@pytest.fixture
def b() -> Project:
    return Project.objects.create(name="b")


@pytest.fixture
def boss(b: Project) -> User:
    """Staff of one project, with every permission but to see all projects."""
    user = _user("boss", projects=(b,))
    user.user_permissions.set(Permission.objects.exclude(codename="view_all_projects"))
    return user


def test_staff_do_not_raise_themselves(boss: User) -> None:
    client, group = _client(boss), Group.objects.create(name="all")
    everything = [str(pk) for pk in Permission.objects.values_list("pk", flat=True)]
    more = {
        "is_superuser": "on",
        "is_staff": "on",
        "groups": [str(group.pk)],
        "user_permissions": everything,
        "username": "root",
    }
    assert (
        client.post(f"{USERS}{boss.pk}/change/", _form(boss, first_name="B", **more)).status_code
        == 302
    )
    boss.refresh_from_db()
    assert (boss.first_name, boss.username, boss.is_superuser, boss.groups.count()) == (
        "B",
        "boss",
        False,
        0,
    )
    assert not boss.user_permissions.filter(codename="view_all_projects").exists()


def test_groups_are_changed_by_superusers_only(boss: User, admin_client: Client) -> None:
    group = Group.objects.create(name="ours")
    boss.groups.add(group)
    form = {
        "name": "ours",
        "permissions": [str(Permission.objects.get(codename="view_all_projects").pk)],
    }
    client = _client(boss)
    assert client.post(f"/admin/auth/group/{group.pk}/change/", form).status_code == 403
    assert client.post("/admin/auth/group/add/", form | {"name": "new"}).status_code == 403
    assert client.post(f"/admin/auth/group/{group.pk}/delete/", {"post": "yes"}).status_code == 403
    assert not group.permissions.exists()
    assert admin_client.post(f"/admin/auth/group/{group.pk}/change/", form).status_code == 302
    right = str(Permission.objects.get(codename="view_all_projects"))
    changed = {"group": "ours", "before": {"permissions": []}, "after": {"permissions": [right]}}
    assert AuditEvent.objects.get(action="group.change").detail == changed
    assert (
        admin_client.post(f"/admin/auth/group/{group.pk}/delete/", {"post": "yes"}).status_code
        == 302
    )
    gone = {"group": "ours", "permissions": [right], "members": ["boss"]}
    assert AuditEvent.objects.get(action="group.delete").detail == gone
    other = Group.objects.create(name="other")
    chosen = {"action": "delete_selected", "_selected_action": str(other.pk), "post": "yes"}
    assert admin_client.post("/admin/auth/group/", chosen).status_code == 302
    assert AuditEvent.objects.filter(action="group.delete", detail__group="other").exists()


def test_users_of_others_and_superusers_are_not_there(boss: User, a: Project, b: Project) -> None:
    stranger, root = _user("stranger", projects=(a,)), User.objects.create_superuser("root")
    b.members.add(root, _user("mate"))
    client = _client(boss)
    page = client.get(USERS).content.decode()
    assert ("mate" in page, "stranger" in page, "root" in page) == (True, False, False)
    for user in (stranger, root):
        assert client.get(f"{USERS}{user.pk}/change/").status_code == 302
        assert _password(client, user) in {302, 404}
        client.post(f"{USERS}{user.pk}/change/", _form(user, email="taken@example.com"))
        user.refresh_from_db()
        assert (user.email, user.check_password("something-long-and-new")) == ("", False)
    assert "stranger" not in client.get(f"/admin/projects/project/{b.pk}/change/").content.decode()
    assert client.get(f"{USERS}?groups__name=x").status_code in {302, 400}


@pytest.mark.parametrize(
    "kind",
    ["a right more", "a right more by a group", "a project more", "inactive, with a right more"],
)
def test_who_is_more_than_one_is_looked_at_but_not_changed(
    kind: str, a: Project, b: Project
) -> None:
    clerk = _user("clerk", "view_user", "change_user", projects=(b,))
    mate = _user(
        "mate",
        projects=(b, a) if kind == "a project more" else (b,),
        is_active=not kind.startswith("inactive"),
    )
    right = Permission.objects.get(codename="terminate_session")
    if kind == "a right more by a group":
        group = Group.objects.create(name="operators")
        group.permissions.add(right)
        mate.groups.add(group)
    elif kind != "a project more":
        mate.user_permissions.add(right)
    client = _client(clerk)
    assert client.get(f"{USERS}{mate.pk}/change/").status_code == 200
    assert (
        client.post(f"{USERS}{mate.pk}/change/", _form(mate, email="x@example.com")).status_code
        == 403
    )
    assert _password(client, mate) == 403
    mate.refresh_from_db()
    assert (mate.email, mate.check_password("x")) == ("", True)


def test_who_is_no_more_can_be_helped_and_that_is_on_record(b: Project) -> None:
    clerk, mate = (
        _user("clerk", "view_user", "change_user", projects=(b,)),
        _user("mate", "view_user", projects=(b,)),
    )
    client = _client(clerk)
    assert (
        client.post(f"{USERS}{mate.pk}/change/", _form(mate, email="m@example.com")).status_code
        == 302
    )
    assert _password(client, mate) == 302
    mate.refresh_from_db()
    assert (mate.email, mate.check_password("something-long-and-new")) == ("m@example.com", True)
    rows = [
        (row.actor, row.action, row.detail["user"]) for row in AuditEvent.objects.order_by("id")
    ]
    assert rows == [
        ("admin:clerk", "user.change", "mate"),
        ("admin:clerk", "user.password", "mate"),
    ]


def test_making_and_deleting_users_is_for_superusers(
    boss: User, b: Project, admin_client: Client
) -> None:
    mate, client = _user("mate", projects=(b,)), _client(boss)
    new = {
        "username": "new",
        "usable_password": "true",
        "password1": "something-long-and-new",
        "password2": "something-long-and-new",
    }
    assert client.post(f"{USERS}add/", new).status_code == 403
    assert client.post(f"{USERS}{mate.pk}/delete/", {"post": "yes"}).status_code == 403
    client.post(
        USERS, {"action": "delete_selected", "_selected_action": str(mate.pk), "post": "yes"}
    )
    assert User.objects.filter(pk=mate.pk).exists()
    assert admin_client.post(f"{USERS}add/", new).status_code == 302
    assert User.objects.filter(username="new").exists()
    assert AuditEvent.objects.get(action="user.create").detail == {
        "user": "new",
        "after": {"username": "new"},
    }


def test_what_a_user_may_from_now_on_is_on_record(b: Project, admin_client: Client) -> None:
    mate, group = _user("mate", projects=(b,)), Group.objects.create(name="operators")
    right = Permission.objects.get(codename="terminate_session")
    joined = {"date_joined_0": "2026-01-02", "date_joined_1": "03:04:05"}
    more = {
        **joined,
        "username": "mate2",
        "is_staff": "",
        "is_superuser": "on",
        "groups": [str(group.pk)],
        "user_permissions": [str(right.pk)],
    }
    assert admin_client.post(f"{USERS}{mate.pk}/change/", _form(mate, **more)).status_code == 302
    detail = AuditEvent.objects.get(action="user.change").detail
    before = {
        "username": "mate",
        "is_staff": True,
        "is_superuser": False,
        "groups": [],
        "user_permissions": [],
    }
    assert before.items() <= detail["before"].items()
    assert detail["after"]["groups"] == ["operators"]
    assert detail["after"]["user_permissions"] == [str(right)]
    assert (detail["user"], detail["after"]["is_superuser"], detail["after"]["is_staff"]) == (
        "mate2",
        True,
        False,
    )


def test_members_of_a_project_are_chosen_among_users_one_sees(
    boss: User, a: Project, b: Project
) -> None:
    stranger, root = _user("stranger", projects=(a,)), User.objects.create_superuser("root")
    b.members.add(root)
    client, page = _client(boss), f"/admin/projects/project/{b.pk}/change/"
    form = {
        "name": "b",
        "max_interactive_sessions": "2",
        "max_pause_minutes": "30",
        "approvals": "auto",
        "keeps_output": "on",
        "members": [str(boss.pk)],
    }
    assert (
        b"is not one of the available choices"
        in client.post(page, form | {"members": [str(stranger.pk)]}).content
    )
    assert client.post(page, form).status_code == 302
    assert set(b.members.all()) == {boss, root}, "who cannot be seen stays"
    row = AuditEvent.objects.get(action="project.change")
    assert (row.actor, row.project_id, row.detail) == (
        "admin:boss",
        b.pk,
        {
            "before": {"max_interactive_sessions": 1, "members": ["boss", "root"]},
            "after": {"max_interactive_sessions": 2, "members": ["boss", "root"]},
        },
    )


@pytest.mark.parametrize(
    ("scope", "permission"),
    [
        ("session:kill", "terminate_session"),
        ("secret:use", "change_secret"),
        ("monitor:delete", "clear_output"),
        ("admin:*", None),
    ],
)
def test_a_token_may_nothing_that_its_maker_may_not(
    b: Project, scope: str, permission: str | None
) -> None:
    form = {
        "project": str(b.pk),
        "name": "t",
        "scopes": [scope],
        "is_mine": "on",
        "approvals": "auto",
    }
    maker = _user("maker", "view_apitoken", "manage_apitoken", projects=(b,))
    assert b"valid choice" in _client(maker).post("/admin/projects/apitoken/add/", form).content
    assert not ApiToken.objects.exists()
    if permission is not None:
        able = _user("able", "view_apitoken", "manage_apitoken", permission, projects=(b,))
        assert _client(able).post("/admin/projects/apitoken/add/", form).status_code == 200
        assert ApiToken.objects.get().scopes == [scope]
