"""The leases of all connections of this process are renewed together: a transaction for each was most of what idle hosts cost."""

import asyncio
from typing import Final
from weakref import WeakKeyDictionary

from projects.conf import conf
from projects.database import in_database
from projects.errors import StorageUnavailable
from projects.inbound import leases
from projects.inbound.leases import Lease

GATHER_SECONDS: Final = 0.5
"""How long the first lease of a batch waits for others, at most."""


class _Batch:
    def __init__(self) -> None:
        self.leases: list[Lease] = []
        self.renewal = asyncio.create_task(_renew_soon(self), name="renewal of leases")


_gathering: "WeakKeyDictionary[asyncio.AbstractEventLoop, _Batch]" = WeakKeyDictionary()


async def renew(lease: Lease) -> None:
    """Renews the lease with the others of the next moment. Raises Revoked, Fenced, or StorageUnavailable."""
    loop = asyncio.get_running_loop()
    batch = _gathering.get(loop)
    if batch is None:
        batch = _gathering[loop] = _Batch()
    batch.leases.append(lease)
    # A connection that ends meanwhile ends its own wait alone.
    renewed = await asyncio.shield(batch.renewal)
    if renewed is None:
        raise StorageUnavailable
    if lease not in renewed:
        await in_database(leases.renew_one, lease)


async def _renew_soon(batch: _Batch) -> set[Lease] | None:
    """The leases renewed; None if the database is away."""
    await asyncio.sleep(min(GATHER_SECONDS, conf.heartbeat_seconds / 4))
    _gathering.pop(asyncio.get_running_loop(), None)
    renewed: set[Lease] = set()
    for start in range(0, len(batch.leases), leases.RENEWED_AT_ONCE):
        try:
            renewed |= await in_database(leases.renew, batch.leases[start : start + leases.RENEWED_AT_ONCE])
        except StorageUnavailable:
            return None
    return renewed
