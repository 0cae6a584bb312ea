"""The fault that puts an older database under a product that goes on: a backup and its restore."""

import asyncio
import signal
from typing import Final

from chaos.faults.harm import Harm
from chaos.faults.schedule import Fault

_STILL_SERVED: Final = "still uses the database"
_TRIES: Final = 10
_PAUSE_SECONDS: Final = 1.0


async def restore(harm: Harm, fault: Fault) -> None:
    """Make a backup under load, and restore it later, by the steps of the how-to guide.

    Its time is spent twice: after the backup, so that something is lost, and before the restore is
    confirmed, while nobody may do anything.
    """
    product = harm.product
    backups = product.directory / f"backups-{fault.number}"
    async with harm.lasting(fault):
        await product.manage("backup", str(backups))
        await asyncio.sleep(fault.seconds / 2)
        await asyncio.gather(*(server.end(signal.SIGTERM) for server in product.servers))
        (backup,) = await asyncio.to_thread(lambda: list(backups.glob("holdline-*")))
        await _put_back(harm, str(backup))
        harm.history.note("suspended", is_so=True)
        for server in product.servers:
            server.start()
        await asyncio.gather(*(harm.start(fault, server) for server in product.servers))
        await asyncio.sleep(fault.seconds / 2)
        logs = [word for server in product.servers for word in ("--log", str(server.log))]
        harm.history.note("suspended", is_so=False)
        await product.manage("confirm_restore", "--yes", *logs)


async def _put_back(harm: Harm, backup: str) -> None:
    """Restore, as soon as nothing is left of the connections of the servers that were stopped."""
    for left in reversed(range(_TRIES)):
        try:
            await harm.product.manage("restore", backup, "--replace")
        except RuntimeError as error:
            if _STILL_SERVED not in str(error) or not left:
                raise
            await asyncio.sleep(_PAUSE_SECONDS)
        else:
            return
