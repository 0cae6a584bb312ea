"""A message is sent to a real listener, which may be slow, lie or be away."""

import json
from collections.abc import Iterator
from uuid import uuid4

import pytest
from django.core import mail
from django.test import override_settings

from projects.attention import sending
from projects.attention.sending import Letter, SendResult, send
from projects.attention.targets import Opened, Way, new_key
from tests.support.ports import free_port
from tests.support.targets.listener import Listener, listening
from tests.unit.projects.attention.test_signature import openssl_signature

KEY = new_key()


def _letter(address: str, way: str = Way.WEBHOOK, *, key: str = KEY, body: str = "{}") -> Letter:
    return Letter(
        message_id=uuid4(),
        project_id=uuid4(),
        target_id=uuid4(),
        way=way,
        to=Opened(address, key),
        body=body,
        attempts=0,
    )


@pytest.fixture
def listener() -> Iterator[Listener]:
    """A listener on the loopback, which messages may reach."""
    with override_settings(ATTENTION_NETWORKS=("127.0.0.0/8",)), listening() as found:
        yield found


async def test_a_webhook_arrives_once_and_its_signature_verifies(listener: Listener) -> None:
    letter = _letter(f"{listener.url}/hook?a=b", body='{"type":"attention.test"}')
    assert await send(letter) == SendResult()
    [request] = listener.requests
    assert (request.path, request.body) == ("/hook?a=b", letter.body.encode())
    assert request.headers["webhook-id"] == f"msg_{letter.message_id.hex}"
    expected = openssl_signature(request.headers, request.body, KEY)
    assert request.headers["webhook-signature"] == expected


@pytest.mark.parametrize("way", [Way.WEBHOOK, Way.NTFY])
async def test_a_scheme_in_capitals_is_the_same_scheme(listener: Listener, way: Way) -> None:
    letter = _letter(f"{listener.url.replace('http', 'HTTP')}/hook", way)
    assert await send(letter) == SendResult()
    assert len(listener.requests) == 1
    # By its scheme an address is known to be reached through TLS.
    secure = sending._address_of(_letter("HTTPS://Example.com/Hook?A", way))
    assert (
        secure
        == {
            Way.WEBHOOK: "https://Example.com/Hook?A",
            Way.NTFY: "https://Example.com/",
        }[way]
    )


async def test_a_repeat_has_the_same_id(listener: Listener) -> None:
    letter = _letter(listener.url)
    await send(letter)
    await send(letter)
    assert len({request.headers["webhook-id"] for request in listener.requests}) == 1


@pytest.mark.parametrize(("status", "is_final"), [(500, False), (404, False), (410, True)])
async def test_an_answer_that_is_no_success_says_its_status(
    listener: Listener, status: int, is_final: bool
) -> None:
    listener.status = status
    assert await send(_letter(listener.url)) == SendResult(f"the answer was {status}", is_final)


async def test_a_redirect_is_not_followed(listener: Listener) -> None:
    listener.status, listener.location = 307, f"{listener.url}/elsewhere"
    assert await send(_letter(listener.url)) == SendResult("the answer was 307")
    assert [request.path for request in listener.requests] == ["/"]


async def test_a_listener_that_says_nothing_is_given_up(
    listener: Listener, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sending, "SEND_SECONDS", 0.2)
    listener.is_silent = True
    assert await send(_letter(listener.url)) == SendResult("no answer within 0.2 s")


async def test_a_listener_that_is_away_is_an_error_without_its_words(listener: Listener) -> None:
    outcome = await send(_letter(f"http://127.0.0.1:{free_port()}/"))
    assert outcome == SendResult("not sent: ConnectError")


async def test_nothing_is_sent_to_an_address_that_is_not_allowed() -> None:
    with listening() as found:
        assert await send(_letter(found.url)) == SendResult("the address is not allowed")
        assert found.requests == []


async def test_ntfy_takes_json_at_its_root_with_the_token(listener: Listener) -> None:
    letter = _letter(f"{listener.url}/ops", Way.NTFY, key="tk_1", body='{"topic":"ops"}')
    assert await send(letter) == SendResult()
    [request] = listener.requests
    assert (request.path, request.headers["authorization"]) == ("/", "Bearer tk_1")


async def test_an_email_goes_through_the_backend_of_django() -> None:
    body = json.dumps({"subject": "[Holdline] acme: A host\nis away", "text": "web-17"})
    assert await send(_letter("ops@example.com", Way.EMAIL, key="", body=body)) == SendResult()
    [sent] = mail.outbox
    assert (sent.subject, sent.to) == ("[Holdline] acme: A host is away", ["ops@example.com"])
