"""Send one message to its target: an HTTP request or an e-mail, bounded in time and size.

Redirects are not followed and answers are not kept. What is returned says in a few words why a
message was not received; it never quotes the target, whose answers others write.
"""

import asyncio
import json
import ssl
from dataclasses import dataclass
from functools import cache
from typing import Final
from urllib.parse import urlsplit
from uuid import UUID

import httpcore2
from django.conf import settings
from django.core.mail import EmailMessage, get_connection

from projects.attention.addresses import AddressRefused, GuardedBackend
from projects.attention.signature import signed_headers
from projects.attention.targets import Opened, Way
from projects.storage import clock

SEND_SECONDS: Final = 10.0
_GONE: Final = 410


@dataclass(frozen=True, slots=True, kw_only=True)
class Letter:
    """A message with the place it goes to, ready to be sent."""

    message_id: UUID
    target_id: UUID
    project_id: UUID
    way: str
    to: Opened
    body: str
    attempts: int


@dataclass(frozen=True, slots=True)
class SendResult:
    """The result of an attempt. An empty ``error``: the target has received the message.

    ``is_final``: no further attempt is made.
    """

    error: str = ""
    is_final: bool = False


async def send(letter: Letter) -> SendResult:
    """Make one attempt to send a message, of at most SEND_SECONDS. Raises nothing."""
    if not letter.to.address:
        return SendResult("the server has no key for the address: set the target anew")
    try:
        async with asyncio.timeout(SEND_SECONDS):
            if letter.way == Way.EMAIL:
                return await _mail(letter)
            return await _post(letter)
    except AddressRefused as refusal:
        return SendResult(str(refusal))
    except TimeoutError:
        return SendResult(f"no answer within {SEND_SECONDS:g} s")
    except Exception as error:  # noqa: BLE001 - one target must not stop the others; its row says why
        return SendResult(f"not sent: {type(error).__name__}")


# ---- HTTP ----------------------------------------------------------------------------------------


async def _post(letter: Letter) -> SendResult:
    url = _address_of(letter)
    backend = GuardedBackend(is_encrypted=url.startswith("https:"))
    context, headers = await asyncio.to_thread(_trusted), [*_headers(letter).items()]
    async with (
        httpcore2.AsyncConnectionPool(ssl_context=context, network_backend=backend) as pool,
        # Only the status is read: the answer may be of any length.
        pool.stream("POST", url, headers=headers, content=letter.body.encode()) as answer,
    ):
        status = int(answer.status)
    if 200 <= status < 300:
        return SendResult()
    return SendResult(f"the answer was {status}", is_final=status == _GONE)


@cache
def _trusted() -> ssl.SSLContext:
    """The authorities of this system. To read them takes some 45 ms: never on the event loop."""
    return ssl.create_default_context()


def _address_of(letter: Letter) -> str:
    """The URL that is posted to. An ntfy server takes JSON at its root only."""
    parts = urlsplit(letter.to.address)
    if letter.way != Way.NTFY:
        # The scheme in small letters, by which the connection is chosen.
        return parts.geturl()
    above = parts.path.rstrip("/").rpartition("/")[0]
    return f"{parts.scheme}://{parts.netloc}{above}/"


def _headers(letter: Letter) -> dict[str, str]:
    headers = {"content-type": "application/json", "user-agent": "Holdline"}
    if letter.way == Way.WEBHOOK:
        now = int(clock.now().timestamp())
        headers |= signed_headers(
            f"msg_{letter.message_id.hex}", now, letter.body.encode(), letter.to.key
        )
    elif letter.to.key:
        headers["authorization"] = f"Bearer {letter.to.key}"
    return headers


# ---- e-mail --------------------------------------------------------------------------------------


async def _mail(letter: Letter) -> SendResult:
    content = json.loads(letter.body)
    mail = EmailMessage(
        subject=" ".join(content["subject"].split()),
        body=content["text"],
        from_email=settings.DEFAULT_FROM_EMAIL,
        to=[letter.to.address],
        headers={"Message-ID": f"<{letter.message_id}@holdline>"},
        connection=get_connection(timeout=SEND_SECONDS),
    )
    await asyncio.to_thread(mail.send)
    return SendResult()
