"""A person who may look at everything changes nothing, whatever they send, and breaks no page."""

from collections.abc import Iterator, Mapping
from typing import Final

import pytest
from django.apps import apps
from django.contrib import admin
from django.contrib.auth.models import Permission, User
from django.core import serializers
from django.test import Client
from django.urls import NoReverseMatch, reverse

from projects.models import ApiToken, CommandSession
from tests.unit.console.test_urls import addresses_of

pytestmark = pytest.mark.django_db(transaction=True)

_KEPT_BY_LOOKING: Final = {"sessions.session", "projects.ratemeter", "projects.auditevent"}
_FORMS: Final[tuple[Mapping[str, object], ...]] = (
    {},
    {"answer": "approve", "reason": "x", "confirm": "yes", "post": "yes", "minutes": "15"},
    {"username": "ann", "is_staff": "on", "is_superuser": "on", "name": "x", "typed": "x"},
)


def _rows() -> dict[str, str]:
    found = {}
    for model in apps.get_models():
        if (label := model._meta.label_lower) not in _KEPT_BY_LOOKING:
            for row in model._default_manager.all():
                found[f"{label} {row.pk}"] = serializers.serialize("json", [row])
    return found


def _admin_addresses() -> Iterator[str]:
    for model, its_admin in admin.site._registry.items():
        rows = list(model._default_manager.all()[:1])
        for pattern in its_admin.get_urls():
            for arguments in ([], [row.pk for row in rows]):
                try:
                    yield reverse(f"admin:{getattr(pattern, 'name', None)}", args=arguments)
                except NoReverseMatch:
                    continue


def _actions() -> Iterator[tuple[str, dict[str, object]]]:
    for model, its_admin in admin.site._registry.items():
        at = reverse(f"admin:{model._meta.app_label}_{model._meta.model_name}_changelist")
        chosen = [str(row.pk) for row in model._default_manager.all()[:2]]
        for name, *_ in its_admin._get_base_actions():
            yield at, {"action": name, "_selected_action": chosen, "post": "yes"}


@pytest.fixture
def looker(session: CommandSession) -> Client:
    """A member of the project with every right to look, and no other one."""
    person = User.objects.create_user("ann", is_staff=True)
    person.user_permissions.set(Permission.objects.filter(codename__startswith="view_"))
    session.project.members.add(person)
    ApiToken.objects.create(project=session.project, name="agent", key_id="k", digest="d")
    client = Client(raise_request_exception=False)
    client.force_login(person)
    return client


def test_nothing_that_is_sent_by_who_may_only_look_changes_a_row(
    looker: Client, session: CommandSession
) -> None:
    # A measured echo is told by the host, which is none here.
    pages = [at for at in addresses_of(session) if not at.endswith("/echo/")]
    before = _rows()
    assert len(before) > 100
    sent = [(at, form) for at in (*pages, *_admin_addresses()) for form in _FORMS]
    assert len(sent) > 250
    broken = [at for at, form in (*sent, *_actions()) if looker.post(at, form).status_code >= 500]
    assert broken == []
    assert _rows() == before
