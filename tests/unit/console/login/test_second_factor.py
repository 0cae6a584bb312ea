"""The second factor: required where the deployment says so, and no code counts twice."""

import re
from base64 import b32decode, b32encode
from datetime import timedelta
from typing import Any

import pytest
from cryptography.fernet import Fernet
from cryptography.hazmat.primitives.hashes import SHA1
from cryptography.hazmat.primitives.twofactor.totp import TOTP
from django.contrib.auth.models import User
from django.core.management import call_command
from django.http import HttpRequest
from django.test import Client

from console.live.person import LoginEnded, person_of
from console.login import second_factor
from console.models import SecondFactor
from projects.admin.parts.access import require_still
from projects.errors.base import Forbidden
from projects.models import AuditEvent
from projects.storage import clock
from projects.storage.sealing import open_sealed

pytestmark = pytest.mark.django_db
SET_UP, ASK = "/login/second-factor/", "/login/code/"


@pytest.fixture
def person() -> Client:
    """A superuser who has shown the password."""
    User.objects.create_superuser("ann", password="right")
    return _shown_password()


def _shown_password() -> Client:
    client = Client()
    assert client.post("/login/", {"username": "ann", "password": "right"}).status_code == 302
    return client


def _key_shown(client: Client) -> bytes:
    """The key that the page shows to this login."""
    (key,) = re.findall(r"<pre[^>]*>([A-Z2-7]+)</pre>", client.get(SET_UP).text)
    return b32decode(key)


def _code(step: int = 0, key: bytes = b"") -> str:
    key = key or open_sealed(SecondFactor.objects.get().sealed_key)
    at = int(clock.now().timestamp()) + 30 * step
    return TOTP(key, 6, SHA1(), 30).generate(at).decode()


def _set_up(client: Client) -> list[str]:
    text = client.post(SET_UP, {"code": _code(key=_key_shown(client))}).text
    codes = re.findall(r"[0-9a-f]{8}-[0-9a-f]{8}", text)
    assert len(codes) == 10
    return codes


def _is_in(client: Client) -> bool:
    answers = {client.get(page).status_code for page in ("/", "/admin/", "/hosts/")}
    assert len(answers) == 1, "every page gives the same answer"
    return answers == {200}


def test_a_password_alone_opens_nothing_once_the_factor_is_on(person: Client) -> None:
    assert _is_in(person)
    _set_up(person)
    assert _is_in(person), "who set it up is in"
    other = _shown_password()
    assert not _is_in(other)
    assert other.get("/hosts/", follow=True).request["PATH_INFO"] == ASK
    assert other.get("/admin/", follow=True).request["PATH_INFO"] == ASK
    assert other.post(ASK, {"code": _code(1), "next": "/hosts/"})["Location"] == "/hosts/"
    assert _is_in(other)


def test_a_code_counts_once(person: Client) -> None:
    _set_up(person)
    code = _code(1)
    first, second = _shown_password(), _shown_password()
    first.post(ASK, {"code": code})
    assert "was used before" in second.post(ASK, {"code": code}).text
    assert (_is_in(first), _is_in(second)) == (True, False)


def test_a_clock_that_was_ahead_locks_nobody_out(
    person: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    _set_up(person)
    with monkeypatch.context() as ahead:
        tomorrow = clock.now() + timedelta(days=1)
        ahead.setattr(clock, "now", lambda: tomorrow)
        early = _shown_password()
        early.post(ASK, {"code": _code(1)})
        assert _is_in(early)
    code = _code()
    first, second = _shown_password(), _shown_password()
    first.post(ASK, {"code": code})
    second.post(ASK, {"code": code})
    assert (_is_in(first), _is_in(second)) == (True, False)


def test_a_recovery_code_counts_once(person: Client) -> None:
    codes = _set_up(person)
    first, second = _shown_password(), _shown_password()
    first.post(ASK, {"code": codes[3]})
    second.post(ASK, {"code": codes[3]})
    assert (_is_in(first), _is_in(second)) == (True, False)
    assert "9 recovery codes" in first.get(SET_UP).text


def test_guessing_is_slowed_and_on_record(person: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    _set_up(person)
    guesser = _shown_password()
    for _ in range(5):
        guesser.post(ASK, {"code": "000000"})
    assert "Wait a few minutes" in guesser.post(ASK, {"code": _code(1)}).text
    assert AuditEvent.objects.filter(action="second_factor.failed").count() == 5
    assert AuditEvent.objects.filter(action="second_factor.throttled").count() == 1
    later = clock.now() + timedelta(minutes=16)
    monkeypatch.setattr(clock, "now", lambda: later)
    guesser.post(ASK, {"code": _code(1)})
    assert _is_in(guesser)


def test_a_deployment_can_require_it(person: Client, settings: Any) -> None:
    settings.REQUIRE_SECOND_FACTOR = True
    assert not _is_in(person)
    assert person.get("/admin/", follow=True).request["PATH_INFO"] == SET_UP
    _set_up(person)
    assert _is_in(person)
    person.post(SET_UP, {"code": _code(1)})
    assert SecondFactor.objects.exists(), "nobody turns off what is required"


def test_it_is_turned_off_with_a_code_or_by_an_operator(person: Client) -> None:
    _set_up(person)
    person.post(SET_UP, {"code": "000000"})
    assert SecondFactor.objects.exists()
    person.post(SET_UP, {"code": _code(1)})
    assert not SecondFactor.objects.filter(confirmed_at__isnull=False).exists()
    _set_up(person)
    call_command("remove_second_factor", "ann")
    assert _is_in(_shown_password())


def test_the_key_is_neither_in_the_database_nor_shown_again(person: Client) -> None:
    person.get(SET_UP)
    key = _key_shown(person)
    assert _key_shown(person) == key
    person.post(SET_UP, {"code": _code(key=key)})
    assert key not in bytes(SecondFactor.objects.get().sealed_key)
    assert b32encode(key).decode() not in person.get(SET_UP).text
    assert "second_factor_key" not in person.session


def test_no_login_confirms_the_key_that_another_one_was_shown(person: Client) -> None:
    other = _shown_password()
    theirs, own = _key_shown(other), _key_shown(person)
    assert theirs != own
    assert "This code is wrong" in person.post(SET_UP, {"code": _code(key=theirs)}).text
    person.post(SET_UP, {"code": _code(key=own)})
    other.post(SET_UP, {"code": _code(key=theirs)})
    assert (_is_in(person), _is_in(other)) == (True, False)
    assert open_sealed(SecondFactor.objects.get().sealed_key) == own


def test_a_factor_confirmed_at_the_same_moment_stays_as_it_is(
    person: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = _shown_password()
    theirs, own = _key_shown(other), _key_shown(person)
    confirm = second_factor.confirm_with

    def confirmed_after_another(request: HttpRequest, code: str) -> list[str]:
        monkeypatch.setattr(second_factor, "confirm_with", confirm)
        person.post(SET_UP, {"code": _code(key=own)})
        return confirm(request, code)

    monkeypatch.setattr(second_factor, "confirm_with", confirmed_after_another)
    answer = other.post(SET_UP, {"code": _code(key=theirs)})
    assert "done in another login" in answer.text
    assert open_sealed(SecondFactor.objects.get().sealed_key) == own


def test_a_long_answer_ends_with_the_login_that_lacks_its_factor(person: Client) -> None:
    request = HttpRequest()
    request.session = person.session
    require_still(request, [])
    _set_up(_shown_password())
    with pytest.raises(Forbidden):
        require_still(request, [])


def test_the_page_after_the_code_is_one_of_ours(person: Client) -> None:
    _set_up(person)
    other = _shown_password()
    answer = other.post(ASK, {"code": _code(1), "next": "https://evil.example/"})
    assert answer["Location"] == "/"


def test_the_socket_refuses_a_login_without_its_factor(person: Client) -> None:
    _set_up(person)
    assert person_of(str(person.session.session_key)).actor == "admin:ann"
    with pytest.raises(LoginEnded):
        person_of(str(_shown_password().session.session_key))


def test_without_its_key_a_recovery_code_is_right_and_nothing_else(
    person: Client, settings: Any
) -> None:
    codes = _set_up(person)
    code = _code(1)
    settings.ENCRYPTION_KEYS = [Fernet.generate_key().decode()]
    client = _shown_password()
    assert "This code is wrong" in client.post(ASK, {"code": code}).text
    assert client.post(ASK, {"code": codes[0]}).status_code == 302


def test_a_factor_that_is_not_confirmed_gets_a_key_that_the_server_has(
    person: Client, settings: Any
) -> None:
    person.get(SET_UP)
    settings.ENCRYPTION_KEYS = [Fernet.generate_key().decode()]
    assert len(_set_up(person)) == 10
