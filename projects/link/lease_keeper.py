"""Renew the leases of all connections of this process together, in one transaction.

A transaction for each lease would be most of the cost of an idle host.
"""

import asyncio
from typing import Final
from weakref import WeakKeyDictionary

from projects.conf import conf
from projects.errors.server import StorageUnavailable
from projects.link.inbound import leases
from projects.link.inbound.leases import Lease
from projects.storage.access import in_database

GATHER_SECONDS: Final = 0.5
"""The longest wait of the first lease in a batch for others."""


class _RenewalBatch:
    def __init__(self) -> None:
        self.leases: list[Lease] = []
        self.renewal = asyncio.create_task(_renew_soon(self), name="renewal of leases")


_gathering: "WeakKeyDictionary[asyncio.AbstractEventLoop, _RenewalBatch]" = WeakKeyDictionary()


async def renew(lease: Lease) -> None:
    """Renew a lease together with the others of the next moment.

    Raises Revoked, Fenced, or StorageUnavailable.
    """
    loop = asyncio.get_running_loop()
    batch = _gathering.get(loop)
    if batch is None:
        batch = _gathering[loop] = _RenewalBatch()
    batch.leases.append(lease)
    # The shield keeps a connection that ends meanwhile from cancelling the renewal of the others.
    renewed = await asyncio.shield(batch.renewal)
    if renewed is None:
        raise StorageUnavailable
    if lease not in renewed:
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
