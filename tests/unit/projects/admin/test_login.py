"""Guessing a password of the admin is slow, on record, and nobody else is locked out by it."""

from typing import Any

import pytest
from django.contrib.auth import get_user_model
from django.test import Client

from projects.models import AuditEvent

pytestmark = pytest.mark.django_db

LOGIN = "/admin/login/?next=/admin/"


@pytest.fixture(autouse=True)
def _root() -> None:
    get_user_model().objects.create_superuser("root", password="right")


def _answer(password: str, name: str = "root", peer: str = "192.0.2.1") -> Any:
    return Client(REMOTE_ADDR=peer).post(LOGIN, {"username": name, "password": password})


def test_after_too_many_wrong_passwords_the_right_one_has_to_wait_too(settings: Any) -> None:
    settings.LOGIN_FAILURES_PER_MINUTE = 3
    assert [_answer("wrong").status_code for _ in range(5)] == [200, 200, 200, 429, 429]
    refused = _answer("right")
    assert refused.status_code == 429
    assert 1 <= int(refused["Retry-After"]) <= 20
    assert b"Too many failed logins" in refused.content
    assert _answer("right", peer="192.0.2.2").status_code == 302
    assert _answer("wrong", name="Root").status_code == 429, "the same user, written otherwise"


def test_both_outcomes_are_audited_and_what_is_no_name_is_not_repeated() -> None:
    _answer("wrong")
    _answer("x", name="my-password-by-mistake")
    _answer("right")
    rows = [(e.actor, e.action, e.detail) for e in AuditEvent.objects.order_by("id")]
    assert rows == [
        ("nobody", "login.failed", {"user": "root", "from": "192.0.2.1"}),
        ("nobody", "login.failed", {"user": None, "from": "192.0.2.1"}),
        ("admin:root", "login", {"from": "192.0.2.1"}),
    ]


def test_a_login_from_another_site_is_refused() -> None:
    client = Client(enforce_csrf_checks=True)
    assert client.post(LOGIN, {"username": "root", "password": "right"}).status_code == 403
