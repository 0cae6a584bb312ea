"""Whoever types a command is named in the audit log, whatever the command is."""

import getpass
from io import StringIO

import pytest
from django.contrib.auth import get_user_model
from django.core.management import call_command
from django.db import DatabaseError
from django.utils import timezone

from console.models import SecondFactor
from projects.accounts.credentials import api_token_create
from projects.attention.targets import target_save
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
from projects.secrets.store import Terms, secret_set
from tests.support.running.append_only import no_audit_rows

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def _lab(monkeypatch: pytest.MonkeyPatch) -> None:
    """A project with one of everything that a command acts on, all made by a test."""
    lab = Project.objects.create(name="lab")
    api_token_create(project=lab, name="ci", actor="test")
    ApiToken.objects.update(key_id="0" * 16)
    host = Controller.objects.create(project=lab, name="web1", awaits_approval_since=timezone.now())
    ControllerCredential.objects.create(controller=host, key_id="1" * 16, digest="d")
    secret_set(
        project=lab, name="vault", value="a value", terms=Terms(any_controller=True), actor="test"
    )
    target = AttentionTarget(project=lab, name="ops", way=AttentionTarget.Way.WEBHOOK)
    target_save(target, address="https://example.com/hook", key=None, actor="test")
    ada = get_user_model().objects.create_user("ada")
    SecondFactor.objects.create(user=ada)
    monkeypatch.setattr(getpass, "getuser", lambda: "ada")


_COMMANDS = [
    ("create_project new", "", "project.create"),
    ("create_api_token lab", "", "api_token.create"),
    ("create_controller lab web2", "", "controller.create"),
    ("create_controller lab web1 --new-credential", "", "controller_credential.create"),
    ("create_enrolment_code lab web2", "", "enrolment_code.create"),
    ("create_enrolment_key lab --hosts 2", "", "enrolment_code.create"),
    ("approve lab/web1", "", "controller.approve"),
    ("revoke lab/web1", "", "controller.revoke"),
    (f"revoke {'0' * 16}", "", "api_token.revoke"),
    (f"revoke {'1' * 16}", "", "controller_credential.revoke"),
    ("set_secret lab vault --any-controller", "another value\n", "secret.set"),
    ("set_secret lab vault --delete", "", "secret.delete"),
    ("set_attention_target lab ops", "https://example.com/\n", "attention_target.change"),
    ("set_attention_target lab ops --delete", "", "attention_target.delete"),
    ("export_audit --project lab", "", "audit.export"),
    ("remove_second_factor ada", "", "second_factor.remove"),
]


@pytest.mark.parametrize(("arguments", "typed", "action"), _COMMANDS)
def test_each_command_puts_its_person_on_record(
    arguments: str, typed: str, action: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.stdin", StringIO(typed))
    call_command(*arguments.split(), stdout=StringIO(), stderr=StringIO())
    rows = AuditEvent.objects.exclude(actor="test")
    assert action in set(rows.values_list("action", flat=True))
    assert set(rows.values_list("actor", flat=True)) == {"cli:ada"}


def _kept() -> list[object]:
    models = (Project, ApiToken, Controller, ControllerCredential, EnrolmentCode, Secret)
    others = (AttentionTarget, SecondFactor, AuditEvent)
    return [list(model._default_manager.order_by("pk").values()) for model in (*models, *others)]


@pytest.mark.sqlite
@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize(("arguments", "typed", "_action"), _COMMANDS)
def test_a_command_whose_row_cannot_be_written_does_nothing(
    arguments: str, typed: str, _action: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.stdin", StringIO(typed))
    before = _kept()
    with no_audit_rows(), pytest.raises(DatabaseError):
        call_command(*arguments.split(), stdout=(out := StringIO()), stderr=StringIO())
    assert _kept() == before
    assert out.getvalue() == ""
