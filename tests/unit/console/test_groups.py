"""The three groups are there after a migration, and stay as an administrator changed them."""

import pytest
from django.contrib.auth.models import Group

from console.groups import ensure_groups

pytestmark = pytest.mark.django_db


def _rights(name: str) -> set[str]:
    return set(Group.objects.get(name=name).permissions.values_list("codename", flat=True))


def test_a_migrated_server_has_three_groups_with_their_rights() -> None:
    ensure_groups()
    assert {"view_transcript", "view_commandsession", "view_controller"} <= _rights("observer")
    assert "take_over_session" not in _rights("observer")
    assert _rights("operator") - _rights("observer") == {
        "take_over_session",
        "terminate_session",
        "control_run",
        "answer_approval",
    }
    assert _rights("auditor") - _rights("observer") == {"view_auditevent", "export_auditevent"}


def test_a_changed_group_stays_as_it_is() -> None:
    ensure_groups()
    Group.objects.get(name="operator").permissions.clear()
    ensure_groups()
    assert _rights("operator") == set()
    assert Group.objects.count() == 3
