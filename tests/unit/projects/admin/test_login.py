"""Guessing a password of the admin is slow, on record, and nobody else is locked out by it."""

from typing import Any

import pytest
from django.contrib.auth import get_user_model
from django.test import Client

from projects.accounts import guesses
from projects.accounts.errors import RateLimited
from projects.models import AuditEvent, RateMeter

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


def _rows(action: str) -> int:
    return AuditEvent.objects.filter(action=action).count()


def test_failed_and_throttled_logins_are_recorded_separately(settings: Any) -> None:
    settings.LOGIN_FAILURES_PER_MINUTE = 2
    assert [_answer("wrong").status_code for _ in range(4)] == [200, 200, 429, 429]
    assert (_rows("login.failed"), _rows("login.throttled"), _rows("login")) == (2, 2, 0)


def test_right_passwords_use_nothing_up(settings: Any) -> None:
    settings.LOGIN_FAILURES_PER_MINUTE = 2
    assert {_answer("right").status_code for _ in range(9)} == {302}


def test_a_limit_that_is_met_inside_is_an_answer_and_no_failure(
    settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(key: str, *_rest: Any) -> None:
        raise RateLimited("failed logins", 7 if key.startswith("slow") else 1)

    monkeypatch.setattr(guesses, "rate_take", full)
    assert _answer("right").status_code == 429


def test_many_addresses_slow_each_other_down_and_lock_nobody_out(settings: Any) -> None:
    settings.LOGIN_FAILURES_PER_MINUTE = 10
    for number in range(30):
        assert _answer("wrong", peer=f"192.0.2.{number}").status_code == 200
    codes = [_answer("wrong", peer="198.51.100.7").status_code for _ in range(3)]
    assert codes == [200, 429, 429], "one a minute from each address, not ten"
    assert _answer("right", peer="203.0.113.5").status_code == 302


def test_addresses_of_one_network_of_ipv6_are_one(settings: Any) -> None:
    settings.LOGIN_FAILURES_PER_MINUTE = 2
    peers = [f"2001:db8:1:2::{number:x}" for number in range(1, 5)]
    assert [_answer("wrong", peer=peer).status_code for peer in peers] == [200, 200, 429, 429]


def test_a_form_without_a_password_is_no_attempt(settings: Any) -> None:
    settings.LOGIN_FAILURES_PER_MINUTE = 1
    assert [_answer("").status_code for _ in range(4)] == [200] * 4
    assert not AuditEvent.objects.exists()


def test_the_old_password_cannot_be_guessed_on_the_page_that_changes_it(settings: Any) -> None:
    settings.LOGIN_FAILURES_PER_MINUTE = 2
    client = Client()
    client.force_login(get_user_model().objects.get(username="root"))

    def change(old: str) -> Any:
        new = "something-long-and-new"
        return client.post(
            "/admin/password_change/",
            {"old_password": old, "new_password1": new, "new_password2": new},
        )

    assert [change("wrong").status_code for _ in range(2)] == [200, 200]
    assert b"Too many wrong passwords" in change("right").content
    assert (_rows("password.failed"), _rows("password.throttled"), _rows("password.change")) == (
        2,
        1,
        0,
    )
    RateMeter.objects.all().delete()
    assert change("right").status_code == 302
    assert _rows("password.change") == 1


def test_a_login_from_another_site_is_refused() -> None:
    client = Client(enforce_csrf_checks=True)
    assert client.post(LOGIN, {"username": "root", "password": "right"}).status_code == 403
