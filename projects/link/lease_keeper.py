"""Renew the leases of all connections of this process together, in one transaction.

A transaction for each lease would be most of the cost of an idle host. A lease that is given up is
taken out of what is gathered, and a renewal that is under way is waited for, so none undoes it.
"""

import asyncio
import logging
from collections.abc import Coroutine
from typing import Any, Final, TypeVar
from uuid import UUID
from weakref import WeakKeyDictionary

from controller_client.protocol.messages import Hello, Welcome
from projects.conf import conf
from projects.errors.server import StorageUnavailable
from projects.link.inbound import hello as greeting
from projects.link.inbound import leases
from projects.link.inbound.leases import Lease
from projects.link.inbound.reconciling import Missing
from projects.storage.access import in_database

logger = logging.getLogger(__name__)

_T = TypeVar("_T")

GATHER_SECONDS: Final = 0.5
"""The longest wait of the first lease in a batch for others."""


class _RenewalBatch:
    def __init__(self) -> None:
        self.leases: list[Lease] = []
        self.renewal = asyncio.create_task(_renew_soon(self), name="renewal of leases")


_gathering: "WeakKeyDictionary[asyncio.AbstractEventLoop, _RenewalBatch]" = WeakKeyDictionary()
_renewals: dict[Lease, asyncio.Task[None]] = {}


class HeldLease:
    """The lease of one connection, from its HELLO until the daemon says that it goes.

    Its begin and its end are tasks of their own. A daemon that goes hangs up at once, and the end
    of its connection must not cancel them: the host would stay online for the rest of the lease.
    A HELLO whose daemon is gone without a word is cancelled: it could be accepted after the next
    HELLO of that daemon, and fence its connection.
    """

    def __init__(self, controller_id: UUID, credential_id: UUID) -> None:
        self._controller_id = controller_id
        self._credential_id = credential_id
        self._lease: Lease | None = None
        self._is_given_up = False
        self._tasks: set[asyncio.Task[Any]] = set()

    async def begin(self, message: Hello) -> tuple[Welcome, Missing]:
        """Have ``message`` accepted, which begins the lease. Raises as ``greeting.hello`` does."""
        beginning = self._go_on(self._begin(message), "begin of a lease")
        try:
            return await asyncio.shield(beginning)
        except asyncio.CancelledError:
            if not self._is_given_up:
                beginning.cancel()
            raise

    async def renew(self) -> None:
        """Renew the lease. One that was given up is not renewed, and raises the same errors."""
        if self._lease is None:
            return
        if self._is_given_up:
            await in_database(leases.check_standing, self._lease)
        else:
            await renew(self._lease)

    def give_up(self) -> None:
        """End the lease soon, and for good; before HELLO is accepted, as soon as it is."""
        if not self._is_given_up and self._lease is not None:
            self._go_on(self._end(self._lease), "end of a lease")
        self._is_given_up = True

    async def settle(self) -> None:
        """Wait until what was begun is done."""
        if self._tasks:
            await asyncio.wait(self._tasks)

    def _go_on(self, work: Coroutine[Any, Any, _T], name: str) -> asyncio.Task[_T]:
        task = asyncio.create_task(work, name=name)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    async def _begin(self, message: Hello) -> tuple[Welcome, Missing]:
        answer = await in_database(
            greeting.hello, self._controller_id, message, self._credential_id
        )
        self._lease = Lease(self._controller_id, answer[0].epoch, self._credential_id)
        if self._is_given_up:
            await self._end(self._lease)
        return answer

    async def _end(self, lease: Lease) -> None:
        try:
            await release(lease)
        except StorageUnavailable:
            logger.error("the lease of controller %s cannot be ended now", self._controller_id)


async def renew(lease: Lease) -> None:
    """Renew a lease together with the others of the next moment.

    A connection that ends meanwhile does not cancel it. Raises Revoked, Fenced, or
    StorageUnavailable.
    """
    renewal = asyncio.create_task(_renew(lease), name="renewal of a lease")
    _renewals[lease] = renewal
    renewal.add_done_callback(lambda _: _renewals.pop(lease, None))
    await asyncio.shield(renewal)


async def release(lease: Lease) -> None:
    """End a lease, after the renewal of it that is under way. Raises StorageUnavailable."""
    batch = _gathering.get(asyncio.get_running_loop())
    if batch is not None and lease in batch.leases:
        batch.leases.remove(lease)
    elif (renewal := _renewals.get(lease)) is not None:
        await asyncio.wait({renewal})
    await in_database(leases.release, lease.controller_id, lease.epoch)


async def _renew(lease: Lease) -> None:
    loop = asyncio.get_running_loop()
    batch = _gathering.get(loop)
    if batch is None:
        batch = _gathering[loop] = _RenewalBatch()
    batch.leases.append(lease)
    # The shield keeps a renewal that is cancelled from cancelling those of the others.
    renewed = await asyncio.shield(batch.renewal)
    if renewed is None:
        raise StorageUnavailable
    # Most leases are renewed, and the list is long after many hosts came at once.
    if lease not in renewed and lease in batch.leases:
        await in_database(leases.renew_one, lease)


async def _renew_soon(batch: _RenewalBatch) -> set[Lease] | None:
    """The leases that were renewed; None if the database is away."""
    await asyncio.sleep(min(GATHER_SECONDS, conf.heartbeat_seconds / 4))
    _gathering.pop(asyncio.get_running_loop(), None)
    renewed: set[Lease] = set()
    for start in range(0, len(batch.leases), leases.RENEWED_AT_ONCE):
        try:
            renewed |= await in_database(
                leases.renew, batch.leases[start : start + leases.RENEWED_AT_ONCE]
            )
        except StorageUnavailable:
            return None
    return renewed
