"""Who is let onto the controllers' socket, before the socket is opened."""

import pytest
from django.utils import timezone

from projects.accounts.credentials import controller_credential_create
from projects.errors.access import Unauthenticated
from projects.errors.base import Forbidden
from projects.link.admission import admit
from projects.models import Controller, ControllerCredential
from projects.storage.access import in_database
from tests.support.rows import make_controller

pytestmark = pytest.mark.django_db(transaction=True)


def _enrolled() -> tuple[Controller, str]:
    host = make_controller("web-1")
    _, text = controller_credential_create(controller=host)
    return host, text


def _scope(shown: str, query: bytes = b"", **headers: str) -> dict[str, object]:
    given = {"authorization": shown, **headers}
    return {
        "client": ("127.0.0.1", 9),
        "query_string": query,
        "headers": [(name.encode(), value.encode("latin-1")) for name, value in given.items()],
    }


@pytest.mark.parametrize("origin", ["https://evil.example", "http://127.0.0.1:8000", "null", ""])
async def test_no_page_opens_the_socket_whatever_it_shows(origin: str) -> None:
    host, text = await in_database(_enrolled)
    with pytest.raises(Forbidden):
        await admit(_scope(f"Bearer {text}", origin=origin))
    assert (await admit(_scope(f"Bearer {text}")))[0] == host.id


@pytest.mark.parametrize("query", [b"x", b"token=1", b"authorization=Bearer%20x"])
async def test_an_address_with_anything_behind_it_opens_nothing(query: bytes) -> None:
    _, text = await in_database(_enrolled)
    with pytest.raises(Forbidden):
        await admit(_scope(f"Bearer {text}", query))


async def test_only_the_very_credential_opens_the_socket() -> None:
    _, text = await in_database(_enrolled)
    odd = (
        *("", "Bearer", "Bearer ", text, f"Basic {text}", f"Bearer {text[:-1]}"),
        *(f"Bearer {text}x", f"Bearer  {text} {text}", f"Bearer {text.upper()}"),
        *(f"Bearer {text[:-1]}\xe9", f"Bearer {text[:30]}", f"Bearer {'A' * 100_000}"),
        f"Bearer hl_{text.removeprefix('ctl_')}",
    )
    for shown in odd:
        with pytest.raises((Unauthenticated, Forbidden)):
            await admit(_scope(shown))


@pytest.mark.parametrize("over", ["revoked_at", "expires_at"])
async def test_a_credential_that_is_over_opens_nothing(over: str) -> None:
    _, text = await in_database(_enrolled)

    def end() -> None:
        ControllerCredential.objects.update(**{over: timezone.now()})

    await in_database(end)
    with pytest.raises(Unauthenticated):
        await admit(_scope(f"Bearer {text}"))
