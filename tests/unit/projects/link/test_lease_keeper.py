"""Connections renew their leases together, and one that may not does not stop the others."""

import asyncio
import threading
from collections.abc import Sequence
from typing import Any
from uuid import uuid4

import pytest

from projects.accounts.credentials import controller_credential_create
from projects.conf import conf
from projects.errors.server import StorageUnavailable
from projects.link import lease_keeper
from projects.link.inbound import hello as greeting
from projects.link.inbound import leases
from projects.link.inbound.leases import Lease
from projects.link.inbound.refusals import Fenced
from projects.models import Controller
from projects.sessions.selectors import is_online
from projects.storage.access import in_database
from tests.support.rows import make_controller, make_hello

pytestmark = pytest.mark.django_db(transaction=True)


def _connected(count: int) -> list[Lease]:
    found = []
    for _ in range(count):
        controller = make_controller(f"host-{uuid4().hex[:8]}")
        credential, _ = controller_credential_create(controller=controller)
        found.append(
            Lease(
                controller.id,
                greeting.hello(controller.id, make_hello(), credential.id)[0].epoch,
                credential.id,
            )
        )
    Controller.objects.update(lease_expires_at=None)
    return found


async def test_concurrent_renewals_share_a_statement_and_a_fenced_lease_is_told(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    together: list[int] = []

    def renew(some: Sequence[Lease]) -> set[Lease]:
        together.append(len(some))
        return leases_renew(some)

    leases_renew = leases.renew
    monkeypatch.setattr(leases, "renew", renew)
    standing = await in_database(_connected, 5)
    fenced = standing[0]._replace(epoch=standing[0].epoch - 1)
    results = await asyncio.gather(
        *map(lease_keeper.renew, [*standing, fenced]), return_exceptions=True
    )
    assert results[:5] == [None] * 5
    assert isinstance(results[5], Fenced)
    assert together == [6]
    assert await in_database(Controller.objects.filter(lease_expires_at__isnull=False).count) == 5


async def test_one_that_leaves_takes_nobody_with_it() -> None:
    first, second = await in_database(_connected, 2)
    leaving, staying = (
        asyncio.create_task(lease_keeper.renew(first)),
        asyncio.create_task(lease_keeper.renew(second)),
    )
    await asyncio.sleep(0)
    leaving.cancel()
    await staying
    assert await in_database(Controller.objects.filter(lease_expires_at__isnull=False).count) == 2


def _is_online(lease: Lease) -> bool:
    return is_online(Controller.objects.get(id=lease.controller_id).lease_expires_at)


async def test_a_lease_that_ends_while_renewals_are_gathered_stays_ended() -> None:
    leaving, staying = await in_database(_connected, 2)
    renewals = [asyncio.create_task(lease_keeper.renew(lease)) for lease in (leaving, staying)]
    await asyncio.sleep(0)
    await lease_keeper.release(leaving)
    await asyncio.gather(*renewals)
    assert not await in_database(_is_online, leaving)
    assert await in_database(_is_online, staying)


@pytest.mark.parametrize("is_cancelled", [False, True])
@pytest.mark.parametrize("name", ["renew", "renew_one"])
async def test_a_lease_that_ends_during_its_renewal_stays_ended(
    monkeypatch: pytest.MonkeyPatch, name: str, is_cancelled: bool
) -> None:
    (lease,) = await in_database(_connected, 1)
    renew, loop = getattr(leases, name), asyncio.get_running_loop()
    has_begun, may_go_on = asyncio.Event(), threading.Event()

    def slow(held: Any) -> Any:
        loop.call_soon_threadsafe(has_begun.set)
        may_go_on.wait(30)
        return renew(held)

    monkeypatch.setattr(leases, "renew", lambda _: set())
    monkeypatch.setattr(leases, name, slow)
    renewal = asyncio.create_task(lease_keeper.renew(lease))
    await has_begun.wait()
    if is_cancelled:
        renewal.cancel()
    ending = asyncio.create_task(lease_keeper.release(lease))
    await asyncio.sleep(0)
    may_go_on.set()
    await ending
    await asyncio.gather(renewal, return_exceptions=True)
    assert not await in_database(_is_online, lease)


@pytest.mark.parametrize("says_goodbye", [False, True])
async def test_a_hello_of_a_daemon_that_hung_up_counts_only_with_a_goodbye(
    says_goodbye: bool,
) -> None:
    (before,) = await in_database(_connected, 1)
    held = lease_keeper.HeldLease(before.controller_id, before.credential_id)
    may_go_on = threading.Event()
    busy = [
        asyncio.create_task(in_database(may_go_on.wait, 30)) for _ in range(conf.database_threads)
    ]
    await asyncio.sleep(0)
    saying = asyncio.create_task(held.begin(make_hello()))
    for _ in range(3):
        await asyncio.sleep(0)
    if says_goodbye:
        held.give_up()
    saying.cancel()
    await asyncio.wait({saying})
    may_go_on.set()
    await asyncio.gather(*busy)
    await held.settle()
    controller = await in_database(Controller.objects.get, id=before.controller_id)
    assert (controller.epoch > before.epoch) == says_goodbye
    assert not is_online(controller.lease_expires_at)


async def test_a_database_outage_fails_each_renewal_and_later_ones_succeed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    (lease,) = await in_database(_connected, 1)

    def away(_some: Sequence[Lease]) -> set[Lease]:
        raise StorageUnavailable

    with monkeypatch.context() as patched:
        patched.setattr(leases, "renew", away)
        results = await asyncio.gather(
            *map(lease_keeper.renew, [lease, lease]), return_exceptions=True
        )
    assert [type(result) for result in results] == [StorageUnavailable] * 2
    await lease_keeper.renew(lease)
