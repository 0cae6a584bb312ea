"""Lists with an invalid filter show nothing and do nothing, and actions on many rows ask first."""

import re
from datetime import timedelta
from typing import Any
from uuid import UUID

import pytest
from django.contrib.auth.models import Permission, User
from django.test import Client
from django.utils import timezone

from projects.audit.log import audit
from projects.models import AuditEvent, CommandSession, Controller, Project
from tests.support.rows import make_controller, make_session

pytestmark = pytest.mark.django_db(transaction=True)

SESSIONS = "/admin/projects/commandsession/"
HOSTS = "/admin/projects/controller/"
_BROKEN = [
    "controller__id__exact=",
    "controller__id__exact=nonsense",
    "project__id__exact=nonsense",
    "created_at__gte=yesterday",
    "life=",
    "life=bogus",
    "e=1",
]


def _act(rows: list[Any], action: str, **more: str) -> dict[str, Any]:
    return {
        "action": action,
        "_selected_action": [str(row.pk) for row in rows],
        "index": "0",
        **more,
    }


@pytest.mark.parametrize("address", _BROKEN)
def test_a_filter_that_is_not_valid_shows_nothing_and_widens_no_action(
    admin_client: Client, address: str
) -> None:
    session = make_session(make_controller(), command="precious")
    page = admin_client.get(f"{SESSIONS}?{address}")
    assert (page.status_code, b"precious" in page.content) == (400, False)
    answer = admin_client.post(
        f"{SESSIONS}?{address}", _act([session], "terminate", select_across="1", confirmed="yes")
    )
    assert answer.status_code == 400
    session.refresh_from_db()
    assert (session.state, session.ended_by) == ("RUNNING", "")


@pytest.mark.parametrize(
    "place",
    ["project", "controller", "auditevent", "apitoken", "monitor", "secret", "enrolmentcode"],
)
def test_no_list_shows_all_rows_instead_of_what_was_asked_for(
    admin_client: Client, place: str
) -> None:
    assert admin_client.get(f"/admin/projects/{place}/?e=1").status_code == 400
    assert admin_client.get("/admin/auth/user/?is_staff__exact=maybe").status_code == 400


def test_a_filter_with_one_choice_filters_all_the_same(admin_client: Client) -> None:
    session = make_session(make_controller(), command="precious")
    gone = make_controller("gone").pk
    Controller.objects.filter(pk=gone).delete()
    Project.objects.exclude(pk=session.project_id).delete()
    assert b"precious" not in admin_client.get(f"{SESSIONS}?controller__id__exact={gone}").content
    assert (
        b"precious"
        in admin_client.get(f"{SESSIONS}?controller__id__exact={session.controller_id}").content
    )


def test_many_sessions_are_counted_with_their_hosts_before_and_after(admin_client: Client) -> None:
    hosts = [make_controller(name) for name in ("web-1", "web-2")]
    sessions = [make_session(host, "PENDING") for host in hosts for _ in range(4)]
    asked = admin_client.post(
        SESSIONS, _act(sessions[:1], "terminate", select_across="1")
    ).content.decode()
    assert "8 sessions on 2 hosts" in asked
    assert 'value="Yes, terminate 8 sessions on 2 hosts"' in asked
    assert "on web-1 (project-of-web-1)" in asked
    one = admin_client.post(SESSIONS, _act(sessions[:1], "terminate")).content.decode()
    assert 'value="Yes, terminate"' in one


def test_what_was_terminated_is_named_with_its_host(
    admin_client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    # No host is there to end anything; what the page says of it is the subject.
    async def ended(sessions: list[tuple[UUID, UUID]], *, actor: str) -> list[str]:
        return ["" for _ in sessions]

    monkeypatch.setattr("projects.services.sessions_terminate", ended)
    hosts = [make_controller(name) for name in ("web-1", "web-2")]
    sessions = [
        make_session(host, command=f"run {number}") for host in hosts for number in range(4)
    ]

    def said(rows: list[CommandSession]) -> list[str]:
        answer = admin_client.post(SESSIONS, _act(rows, "terminate", confirmed="yes"), follow=True)
        return [str(message) for message in answer.context["messages"]]

    assert said(sessions[:1]) == ["Terminated: run 0 on web-1 (project-of-web-1)"]
    assert said(sessions) == [
        (
            "Terminated: 8 sessions on 2 hosts. web-1 (project-of-web-1): 4, web-2 "
            "(project-of-web-2): 4"
        )
    ]


def test_more_rows_than_a_form_can_carry_are_refused(
    admin_client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("projects.admin.parts.confirmation.MOST_AT_ONCE", 2)
    sessions = [make_session(make_controller(name)) for name in ("a", "b", "c")]
    answer = admin_client.post(SESSIONS, _act(sessions, "terminate"), follow=True)
    assert "too many at once" in answer.content.decode()


@pytest.mark.parametrize("across", ["0", "1"])
def test_an_answer_that_nobody_was_asked_for_covers_no_more_rows(
    admin_client: Client, monkeypatch: pytest.MonkeyPatch, across: str
) -> None:
    asked: list[object] = []

    async def ended(sessions: list[object], *, actor: str) -> list[str]:
        asked.extend(sessions)
        return ["" for _ in sessions]

    monkeypatch.setattr("projects.services.sessions_terminate", ended)
    monkeypatch.setattr("projects.admin.parts.confirmation.MOST_AT_ONCE", 2)
    sessions = [make_session(make_controller(name)) for name in ("a", "b", "c")]
    chosen = sessions[:1] if across == "1" else sessions
    form = {**_act(chosen, "terminate", confirmed="yes"), "select_across": across}
    answer = admin_client.post(SESSIONS, form, follow=True)
    assert "3 rows are too many at once" in answer.content.decode()
    assert asked == []
    form = {**_act(sessions[:2], "terminate", confirmed="yes"), "select_across": "0"}
    admin_client.post(SESSIONS, form, follow=True)
    assert len(asked) == 2


@pytest.mark.parametrize(
    ("action", "fields"),
    [
        ("approve", {"awaits_approval_since": timezone.now()}),
        ("dismiss", {"alarmed_at": timezone.now(), "alarm": "x"}),
    ],
)
def test_many_hosts_are_asked_about_where_one_is_not(
    admin_client: Client, action: str, fields: dict[str, Any]
) -> None:
    hosts = [make_controller(name, **fields) for name in ("web-1", "web-2")]
    (field, *_) = fields
    assert b"2 controllers" in admin_client.post(HOSTS, _act(hosts, action)).content
    assert Controller.objects.filter(**{f"{field}__isnull": False}).count() == 2
    admin_client.post(HOSTS, _act(hosts, action, confirmed="yes"))
    assert not Controller.objects.filter(**{f"{field}__isnull": False}).exists()


def test_revoked_hosts_are_told_and_can_be_left_out(admin_client: Client) -> None:
    make_controller("here")
    make_controller("gone", revoked_at=timezone.now() - timedelta(days=1))
    assert "since 20" in admin_client.get(HOSTS).content.decode()
    assert "gone" not in re.sub(
        r"project-of-gone", "", _table(admin_client.get(f"{HOSTS}?revoked=no"))
    )
    assert ">here<" not in _table(admin_client.get(f"{HOSTS}?revoked=yes"))


def _table(answer: Any) -> str:
    content: str = answer.content.decode()
    return content[
        content.index('id="result_list"') : content.index(
            "</table>", content.index('id="result_list"')
        )
    ]


def test_times_have_seconds_and_a_zone(admin_client: Client) -> None:
    created = timezone.now().replace(microsecond=0)
    session = make_session(make_controller(), created_at=created, started_at=created)
    iso = created.strftime("%Y-%m-%dT%H:%M:%S+0000")
    for page in (SESSIONS, f"{SESSIONS}{session.pk}/change/"):
        assert iso in admin_client.get(page).content.decode()


def test_the_history_of_a_session_is_what_the_audit_log_says(admin_client: Client) -> None:
    session = make_session(make_controller())
    audit(
        "admin:ada",
        "session.hand_back",
        (session.project_id, session.controller_id, session.pk),
        {"note": "<b>done</b>"},
    )
    page = admin_client.get(f"{SESSIONS}{session.pk}/history/").content.decode()
    assert "session.hand_back" in page
    assert "&lt;b&gt;done" in page
    looker = User.objects.create_user("looker", is_staff=True)
    looker.user_permissions.set(Permission.objects.filter(codename="view_commandsession"))
    session.project.members.add(looker)
    client = Client()
    client.force_login(looker)
    assert (
        b"You may not read the audit log" in client.get(f"{SESSIONS}{session.pk}/history/").content
    )
    session.project.members.clear()
    assert client.get(f"{SESSIONS}{session.pk}/history/").status_code == 302


def test_audit_rows_name_and_link_what_they_speak_of_and_can_be_chosen(
    admin_client: Client,
) -> None:
    ours, theirs = make_session(make_controller("web-1")), make_session(make_controller("web-2"))
    for session in (ours, theirs):
        audit(
            "admin:ada",
            f"on.{session.controller.name}",
            (session.project_id, session.controller_id, session.pk),
        )
    audit("nobody", "login.failed", (None, None, None))
    page = _table(admin_client.get("/admin/projects/auditevent/"))
    assert f'<a href="{SESSIONS}{ours.pk}/change/">' in page
    assert "project-of-web-1" in page
    by_host = _table(admin_client.get(f"/admin/projects/auditevent/?host={ours.controller_id}"))
    by_project = _table(
        admin_client.get(f"/admin/projects/auditevent/?project={theirs.project_id}")
    )
    assert ("on.web-1" in by_host, "on.web-2" in by_host) == (True, False)
    assert ("on.web-1" in by_project, "on.web-2" in by_project) == (False, True)
    assert (
        admin_client.get(
            f"/admin/projects/auditevent/?host={AuditEvent.objects.latest('id').project_id}"
        ).status_code
        == 400
    )


def test_every_field_of_a_project_says_what_it_does(admin_client: Client) -> None:
    project = Project.objects.create(name="lab")
    answer = admin_client.get(f"/admin/projects/project/{project.pk}/change/")
    form = answer.context["adminform"].form
    assert [
        name
        for name, field in form.fields.items()
        if not field.help_text and name not in {"name", "members"}
    ] == []
    assert "null</textarea>" not in answer.content.decode()
    same = {
        name: form[name].value() if form[name].value() is not None else ""
        for name in form.fields
        if name != "members"
    }
    assert (
        admin_client.post(f"/admin/projects/project/{project.pk}/change/", same).status_code == 302
    )
    project.refresh_from_db()
    assert (project.allowed_commands, project.session_limits) == (None, None)
