"""A restore suspends whatever may have been revoked, used or changed since the backup."""

from datetime import timedelta
from typing import Any
from uuid import uuid4

import pytest
from django.contrib.auth import get_user_model
from django.test import Client
from django.utils import timezone

from agent.models import AgentRun
from backup.suspension import brought_back, confirm, suspend, unconfirmed
from console.models import SecondFactor
from projects.accounts.authentication import Caller, check_caller
from projects.accounts.credentials import api_token_create
from projects.accounts.errors import EnrolmentRefused
from projects.attention.messages import due_letters, has_due_messages
from projects.attention.targets import target_save
from projects.attention.telling import message_of
from projects.enrolment.codes import enrolment_code_create, host_enrol
from projects.errors.access import Unauthenticated
from projects.models import (
    Approval,
    AttentionTarget,
    AuditEvent,
    CommandSession,
    HeldKeyboard,
    Restore,
)
from projects.sessions.transactions.control import take_over
from projects.sessions.transactions.keyboard import keyboard_take
from projects.storage.sealing import seal
from tests.support.rows import make_controller, make_session

pytestmark = pytest.mark.django_db


def _restored() -> Restore:
    made_at = timezone.now() - timedelta(hours=1)
    return suspend(made_at=made_at, release="0.1.0", actor="cli:admin")


def _suspended() -> Any:
    return AuditEvent.objects.get(action="restore").detail["suspended"]


def test_tokens_are_refused_until_the_restore_is_confirmed() -> None:
    project = make_controller().project
    old, _ = api_token_create(project=project, name="old")
    _restored()
    new, _ = api_token_create(project=project, name="new")
    check_caller(Caller(project.id, "new", frozenset(), new.id))
    with pytest.raises(Unauthenticated):
        check_caller(Caller(project.id, "old", frozenset(), old.id))
    assert [old.key_id in line for line in brought_back()["tokens"]] == [True]
    assert confirm(actor="cli:admin") == 1
    check_caller(Caller(project.id, "old", frozenset(), old.id))
    assert unconfirmed() is None


def test_targets_that_come_back_are_listed_and_told_nothing() -> None:
    host = make_controller()
    target = AttentionTarget(project=host.project, name="ops", way="webhook")
    target_save(target, address="https://gone.example/hook", key=None, actor="test")
    message_of(target, "taken_over", []).save()
    assert has_due_messages()
    _restored()
    assert not has_due_messages()
    assert due_letters() == []
    assert brought_back()["attention targets"] == [f"{host.project.name}: ops (gone.example)"]
    confirm(actor="cli:admin")
    assert len(due_letters()) == 1


def test_nobody_stays_logged_in_or_logs_in_before_the_confirmation() -> None:
    get_user_model().objects.create_superuser("root", password="long enough 1")
    client, credentials = Client(), {"username": "root", "password": "long enough 1"}
    assert client.post("/admin/login/", credentials).status_code == 302
    _restored()
    assert client.get("/admin/").status_code == 302
    refused = client.post("/admin/login/", credentials)
    assert "confirm_restore" in refused.content.decode()
    confirm(actor="cli:admin")
    assert client.post("/admin/login/", credentials).status_code == 302


def test_recovery_codes_count_no_more_and_who_has_a_factor_is_seen() -> None:
    people = get_user_model().objects
    people.create_superuser("root")
    used = SecondFactor(user=people.create_user("ada"), sealed_key=b"k", recovery=["digest"])
    used.confirmed_at = timezone.now()
    used.save()
    SecondFactor.objects.create(user=people.create_user("begun"), sealed_key=b"k")
    _restored()
    used.refresh_from_db()
    assert used.recovery == []
    assert _suspended()["recovery_codes_of"] == 1
    assert brought_back()["users"] == ["ada (second factor)", "begun", "root (superuser)"]


def test_runs_that_are_not_over_stop() -> None:
    run = AgentRun.objects.create(
        project=make_controller().project,
        task="t",
        model="m",
        approvals="ask_all",
        state=AgentRun.State.WAITING,
        submitted_by="a",
        max_steps=1,
        max_tokens=1,
        max_cost_cents=1,
        max_run_seconds=1,
        output_bytes=1,
    )
    _restored()
    run.refresh_from_db()
    assert run.state == AgentRun.State.STOPPED
    assert _suspended()["runs"] == 1


def test_open_approvals_are_withdrawn() -> None:
    approval = Approval.objects.create(
        project=make_controller().project,
        request_id=uuid4(),
        asked_by="token:a",
        tool="start_command",
        sealed_arguments=seal(b"{}"),
        digest="d",
        risk="shell",
    )
    _restored()
    approval.refresh_from_db()
    assert approval.answer == Approval.Answer.WITHDRAWN
    assert _suspended()["approvals"] == 1


def test_open_enrolment_codes_are_revoked() -> None:
    _, code = enrolment_code_create(project=make_controller().project, name="new-host")
    _restored()
    with pytest.raises(EnrolmentRefused):
        host_enrol(code=code)


def test_keyboards_are_handed_back_wherever_they_were_taken() -> None:
    """The admin and manage.py take them without a browser that says that it is there."""
    host = make_controller()
    held, over = make_session(host), make_session(host)
    for session in (held, over):
        take_over(session.project_id, session.id, "cli:ada")
    CommandSession.objects.filter(id=over.id).update(state="EXITED")
    _restored()
    held.refresh_from_db()
    assert (held.taken_over_by, _suspended()["keyboards"]) == ("", 1)
    assert held.handback_note == "cli:ada: handed back by itself: the database was restored"


def test_keyboards_at_browsers_are_handed_back() -> None:
    session = make_session(make_controller())
    keyboard_take(session.project_id, session.id, "admin:ada", is_insisting=False)
    _restored()
    session.refresh_from_db()
    assert session.taken_over_by == ""
    assert not HeldKeyboard.objects.exists()
