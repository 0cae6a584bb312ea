"""What a person sees when something is refused or not there, and where a login leads to."""

import sqlite3
from http import HTTPStatus
from urllib.parse import parse_qs, urlsplit
from uuid import uuid4

import pytest
from django.contrib.auth.models import User
from django.db import OperationalError
from django.test import Client, override_settings
from django.urls import path, reverse

from config import urls
from projects.errors.server import StorageUnavailable
from projects.errors.sessions import SessionNotFound

pytestmark = pytest.mark.django_db


def _fail(_request: object) -> None:
    raise RuntimeError("a-detail-of-ours")


def _write_on_a_read_only_disk(_request: object) -> None:
    cause = sqlite3.OperationalError("attempt to write a readonly database")
    cause.sqlite_errorcode = sqlite3.SQLITE_READONLY
    raise OperationalError("a-detail-of-ours") from cause


def _ask_a_storage_that_is_away(_request: object) -> None:
    raise StorageUnavailable


def _show_a_session_that_is_removed_meanwhile(_request: object) -> None:
    raise SessionNotFound(uuid4())


urlpatterns = [
    path("fails/", _fail),
    path("removed/", _show_a_session_that_is_removed_meanwhile),
    path("read-only/", _write_on_a_read_only_disk),
    path("away/", _ask_a_storage_that_is_away),
    *urls.urlpatterns,
]
handler500 = urls.handler500


def _person(*, is_superuser: bool = False) -> Client:
    client = Client(raise_request_exception=False, enforce_csrf_checks=True)
    person = User.objects.create_user("ann", is_staff=True, is_superuser=is_superuser)
    client.force_login(person)
    return client


@pytest.mark.parametrize("is_superuser", [True, False])
@override_settings(ROOT_URLCONF=__name__)
def test_each_refusal_is_a_page_of_the_console(is_superuser: bool) -> None:
    client = _person(is_superuser=is_superuser)
    answers = {
        "There is nothing here": client.get("/no/such/page"),
        "The server made a mistake": client.get("/fails/"),
        "The database cannot be used now": client.get("/read-only/"),
        "Try again in a moment": client.get("/away/"),
        "This page is out of date": client.post(reverse("console:logout")),
    }
    if is_superuser:
        answers["cannot be read"] = client.get("/search/?q=%00")
    else:
        answers["You may not do this"] = client.get("/hosts/")
    for words in ("The database cannot be used now", "Try again in a moment"):
        assert answers[words].status_code == HTTPStatus.SERVICE_UNAVAILABLE
    for words, answer in answers.items():
        assert answer.status_code >= HTTPStatus.BAD_REQUEST
        assert words in answer.text
        assert 'href="/"' in answer.text
        assert "a-detail-of-ours" not in answer.text


@override_settings(ROOT_URLCONF=__name__)
def test_a_thing_that_is_removed_while_its_page_is_made_is_not_found() -> None:
    answer = _person().get("/removed/")
    assert answer.status_code == HTTPStatus.NOT_FOUND
    assert "There is nothing here" in answer.text


def test_who_has_no_right_can_log_out_and_is_told_why_all_is_empty() -> None:
    answer = _person().get("/")
    assert answer.status_code == HTTPStatus.FORBIDDEN
    assert "Log out ann" in answer.text
    assert "You are a member of no project" in answer.text


def test_who_is_not_signed_in_sees_the_same_page_without_the_header() -> None:
    answer = Client().get("/no/such/page")
    assert "There is nothing here" in answer.text
    assert "Log out" not in answer.text


@pytest.mark.parametrize(
    ("referrer", "way_back"),
    [
        ("http://testserver/hosts/1/?a=b", "/hosts/1/?a=b"),
        ("http://elsewhere.example/hosts/", "/"),
        ("//elsewhere.example/", "/"),
        ("javascript:alert(1)", "/"),
        ("", "/"),
    ],
)
def test_the_login_leads_back_to_the_page_whose_form_was_sent(referrer: str, way_back: str) -> None:
    address = reverse("console:stop_all", kwargs={"host_id": uuid4()})
    answer = Client().post(address, headers={"Referer": referrer} if referrer else {})
    assert parse_qs(urlsplit(answer["Location"]).query)["next"] == [way_back]
