"""Staff of one project learn and do nothing about another, on any page, filter, form or address."""

import re
from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth import get_user_model
from django.contrib.auth.models import Permission
from django.db.models import Model
from django.test import Client
from django.utils import timezone

from agent.models import AgentRun
from projects.accounts.credentials import (
    api_token_create,
    controller_create,
    controller_credential_create,
)
from projects.enrolment.codes import enrolment_code_create
from projects.models import AuditEvent, CommandSession, Controller, Monitor, Project
from projects.secrets.store import Terms, secret_set

pytestmark = pytest.mark.django_db

FOREIGN = "their-own-business"


def _fill(name: str) -> dict[str, Model]:
    """A project with one row of everything, by the place of its pages."""
    project = Project.objects.create(name=name)
    controller = controller_create(project=project, name=f"host-{name}")
    credential, _ = controller_credential_create(controller=controller)
    session = CommandSession.objects.create(
        project=project, controller=controller, command=f"run {name}", state="RUNNING",
        terminal_state="awaiting_input",
        terminal_prompt=f"prompt {name}", terminal_kind="line", terminal_evidence="kernel",
    )  # fmt: skip
    run = AgentRun.objects.create(
        project=project, task=f"task {name}", model="scripted:demo", max_steps=1, max_tokens=1,
        max_cost_cents=1, max_run_seconds=1,
        output_bytes=1,
    )  # fmt: skip
    return {
        "projects/project": project,
        "projects/controller": controller,
        "projects/controllercredential": credential,
        "projects/apitoken": api_token_create(project=project, name=f"token-{name}")[0],
        "projects/enrolmentcode": enrolment_code_create(project=project, name=f"new-{name}")[0],
        "projects/secret": secret_set(
            project=project,
            name="sudo",
            value="correct horse",
            terms=Terms(any_controller=True),
            actor="operator",
        ),
        "projects/commandsession": session,
        "projects/monitor": Monitor.objects.create(
            project=project,
            controller=controller,
            log_file=f"/var/log/{name}",
            session_type="file",
            session_id=session.pk,
        ),
        "projects/auditevent": AuditEvent.objects.filter(project_id=project.pk).latest("id"),
        "agent/agentrun": run,
    }


def _staff(*permissions: str, project: str) -> Client:
    """Somebody with these permissions, or with every one but to see all projects."""
    user = get_user_model().objects.create_user("op", password="x", is_staff=True)
    ours = Permission.objects.filter(content_type__app_label__in=("projects", "agent")).exclude(
        codename="view_all_projects"
    )
    user.user_permissions.set(ours.filter(codename__in=permissions) if permissions else ours)
    Project.objects.get(name=project).members.add(user)
    client = Client()
    client.force_login(user)
    return client


def test_whoever_may_everything_in_one_project_finds_nothing_of_another() -> None:
    ours, theirs = _fill("ours"), _fill(FOREIGN)
    client = _staff(project="ours")
    for place, row in theirs.items():
        base = f"/admin/{place}/"
        listed = client.get(base)
        assert listed.status_code == 200
        assert FOREIGN not in listed.content.decode(), f"{place}: its list, its filters"
        if client.get(f"{base}add/").status_code == 200:
            assert FOREIGN not in client.get(f"{base}add/").content.decode(), (
                f"{place}: the form of a new one"
            )
        own_page = client.get(f"{base}{ours[place].pk}/change/")
        assert own_page.status_code == 200
        assert FOREIGN not in own_page.content.decode(), f"{place}: the page of one of ours"
        for page in ("change", "history", "delete"):
            shown = client.get(f"{base}{row.pk}/{page}/", follow=True)
            assert FOREIGN not in shown.content.decode(), f"{place}: {page}"
        chosen = {"_selected_action": str(row.pk), "confirmed": "yes", "post": "yes"}
        for action in re.findall(r'<option value="(\w+)"', listed.content.decode()):
            client.post(base, {**chosen, "action": action})
        client.post(f"{base}{row.pk}/delete/", {"post": "yes"})
        client.post(
            f"{base}{row.pk}/change/", {"project": str(theirs["projects/project"].pk), "name": "x"}
        )
        before = {field.name: getattr(row, field.name) for field in row._meta.concrete_fields}
        row.refresh_from_db()
        assert {
            field.name: getattr(row, field.name) for field in row._meta.concrete_fields
        } == before, place
    for address in ("transcript", "operate"):
        assert (
            client.post(
                f"/admin/projects/commandsession/{theirs['projects/commandsession'].pk}/{address}/"
            ).status_code
            == 404
        )
    for address in ("live", "stop"):
        assert client.post(f"/runs/{theirs['agent/agentrun'].pk}/{address}/").status_code == 404
    exported = client.post("/admin/projects/auditevent/export/")
    assert exported.status_code == 200
    looked_up = client.get(
        "/admin/autocomplete/?app_label=projects&model_name=commandsession&field_name=controller&term=host"
    )
    assert [row["text"] for row in looked_up.json()["results"]] == ["host-ours"]


def test_nothing_can_be_put_into_a_project_of_others() -> None:
    _fill("ours")
    theirs = Project.objects.create(name=FOREIGN)
    client = _staff(project="ours")
    for place, form in {
        "projects/secret": {
            "name": "x",
            "value": "correct horse",
            "any_controller": "on",
            "allowed_commands": "[]",
        },
        "projects/apitoken": {"name": "x", "scopes": ["session:read"]},
        "projects/enrolmentcode": {"controller_name": "x"},
    }.items():
        client.post(f"/admin/{place}/add/", {**form, "project": str(theirs.pk)})
    client.post("/runs/new/", {"project": str(theirs.pk), "task": "x"})
    related = (theirs.api_tokens, theirs.enrolment_codes)
    assert [rows.count() for rows in related] == [0, 0]
    assert not AgentRun.objects.filter(project=theirs).exists()
    assert not AuditEvent.objects.filter(project_id=theirs.pk).exists()


@pytest.mark.parametrize(
    ("place", "lookup"),
    [
        ("projects/commandsession", "terminal_prompt__startswith=prompt"),
        ("projects/commandsession", "terminal_prompt__regex=^p"),
        ("projects/commandsession", "project__members__password__startswith=p"),
        ("projects/commandsession", "outputchunk__data__contains=x"),
        ("projects/secret", "sealed__startswith=g"),
        ("projects/apitoken", "digest__startswith=0"),
        ("projects/apitoken", "owner__password__startswith=p"),
        ("projects/controllercredential", "digest__startswith=0"),
        ("projects/controllercredential", "controller__project__members__password__startswith=p"),
        ("projects/enrolmentcode", "digest__gte=0"),
        ("agent/agentrun", "draft__contains=x"),
        ("agent/agentrun", "report__contains=x"),
    ],
)
def test_what_a_page_does_not_show_cannot_be_guessed_by_its_filters(
    place: str, lookup: str
) -> None:
    _fill("ours")
    assert _staff(project="ours").get(f"/admin/{place}/?{lookup}").status_code == 400


def test_the_filters_that_are_offered_work() -> None:
    ours = _fill("ours")
    client = _staff(project="ours")
    Controller.objects.update(lease_expires_at=timezone.now() + timedelta(minutes=1))
    project, controller = ours["projects/project"].pk, ours["projects/controller"].pk
    offered: dict[str, tuple[Any, ...]] = {
        "projects/commandsession": (
            "life=active",
            "state__exact=RUNNING",
            f"controller__id__exact={controller}",
            "kind__exact=interactive",
        ),
        "projects/controller": ("presence=online", f"project__id__exact={project}"),
        "projects/controllercredential": (
            f"controller__project__id__exact={project}",
            "revoked_at__isnull=True",
        ),
        "agent/agentrun": (f"project__id__exact={project}",),
    }
    for place, filters in offered.items():
        for one in filters:
            assert (
                f"{ours[place].pk}/change/" in client.get(f"/admin/{place}/?{one}").content.decode()
            ), one


def test_logging_in_makes_another_session_so_that_none_can_be_foisted() -> None:
    get_user_model().objects.create_user("op", password="correct horse", is_staff=True)
    client = Client()
    client.get("/admin/login/")
    foisted = client.session
    foisted["planted"] = True
    foisted.save()
    client.cookies["sessionid"] = foisted.session_key
    client.post("/admin/login/", {"username": "op", "password": "correct horse", "next": "/admin/"})
    assert client.cookies["sessionid"].value != foisted.session_key
    assert (
        Client(headers={"cookie": f"sessionid={foisted.session_key}"}).get("/admin/").status_code
        == 302
    )
    assert client.cookies["sessionid"]["httponly"]
    assert client.cookies["sessionid"]["samesite"] == "Lax"
