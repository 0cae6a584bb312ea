"""The doorbell of a host that connects wakes the calls that wait for its return."""

import asyncio
from collections.abc import Iterator
from datetime import timedelta

import pytest
from django.test import override_settings
from django.utils import timezone

from projects.errors.hosts import ControllerOffline
from projects.models import Controller
from projects.sessions import selectors
from projects.sessions.transactions import returning
from projects.storage.access import in_database
from projects.wakeups import doorbells
from projects.wakeups.bus import exchange
from tests.support.rows import make_controller
from tests.support.waiting import await_until

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.usefixtures("waits_for_long"),
]


async def _change(host: Controller, **fields: object) -> None:
    await in_database(Controller.objects.filter(id=host.id).update, **fields)
    await doorbells.ring_return(host.id)


async def _waiting(host: Controller) -> asyncio.Task[str]:
    """A call that waits for the host until its doorbell rings."""

    def act() -> str:
        if not selectors.is_online(Controller.objects.get(id=host.id).lease_expires_at):
            raise ControllerOffline(host.name, host_id=host.id)
        return "done"

    call = asyncio.ensure_future(returning.once_back(in_database, act))
    group = doorbells.return_group(host.id)
    await await_until(lambda: group in exchange().listeners(), 30, "the call to wait")
    return call


@pytest.fixture
def waits_for_long(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """No call looks by itself."""
    monkeypatch.setattr(returning, "RETURN_SECONDS", 1000.0)
    with override_settings(SAFETY_NET_SECONDS=1000.0):
        yield


async def test_a_call_goes_on_when_the_host_is_back() -> None:
    left = await in_database(make_controller, lease_expires_at=timezone.now())
    call = await _waiting(left)
    await _change(left, lease_expires_at=timezone.now() + timedelta(seconds=600))
    assert await call == "done"


async def test_a_call_waits_for_no_host_that_was_revoked() -> None:
    left = await in_database(make_controller, lease_expires_at=timezone.now())
    call = await _waiting(left)
    await _change(left, revoked_at=timezone.now())
    with pytest.raises(ControllerOffline):
        await call
