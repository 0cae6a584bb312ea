"""Every fault as it is done, and the doing of a whole schedule."""

import asyncio
import time
from collections import defaultdict
from contextlib import AsyncExitStack
from signal import SIGINT, SIGKILL, SIGTERM
from typing import Final

from chaos.faults import killing, networks, restores, shortages, strangers
from chaos.faults.harm import Act, Harm
from chaos.faults.kinds import KINDS
from chaos.faults.schedule import Fault

ACTS: Final[dict[str, Act]] = {
    "server_kill": killing.ending(killing.chosen_server, SIGKILL),
    "server_term": killing.ending(killing.chosen_server, SIGTERM),
    "server_stop": killing.stopping(killing.chosen_server),
    "daemon_kill": killing.ending(killing.daemon, SIGKILL),
    "daemon_term": killing.ending(killing.daemon, SIGTERM),
    "daemon_stop": killing.stopping(killing.daemon),
    "fork_server_kill": killing.fork_server_kill,
    "fork_server_stop": killing.fork_server_stop,
    "server_slow_start": killing.slow_start(killing.chosen_server),
    "daemon_slow_start": killing.slow_start(killing.daemon),
    "postgresql_slow_start": killing.slow_start(killing.backend("postgresql")),
    "holder_kill": killing.holder_kill,
    "holder_stop": killing.holder_stop,
    "everything_kill": killing.everything_kill,
    "postgresql_kill": killing.ending(killing.backend("postgresql"), SIGKILL),
    "postgresql_term": killing.ending(killing.backend("postgresql"), SIGINT),
    "postgresql_stop": killing.stopping(killing.backend("postgresql")),
    "redis_kill": killing.ending(killing.backend("redis"), SIGKILL),
    "redis_stop": killing.stopping(killing.backend("redis")),
    **{
        f"{link}_{what}": of_link(link)
        for link in ("link", "front", "database", "redis")
        for what, of_link in networks.DONE_TO_A_LINK.items()
    },
    "front_lossy": networks.lossy("front"),
    "sqlite_lock": shortages.sqlite_lock,
    "server_descriptors": shortages.descriptors(killing.chosen_server),
    "daemon_descriptors": shortages.descriptors(killing.daemon),
    "server_memory": shortages.memory(killing.chosen_server),
    "daemon_memory": shortages.memory(killing.daemon),
    "server_processes": shortages.processes_of(killing.chosen_server),
    "daemon_processes": shortages.processes_of(killing.daemon),
    "postgresql_processes": shortages.processes_of(killing.backend("postgresql")),
    "server_disk_read_only": shortages.disk_read_only("data", killing.chosen_server),
    "daemon_disk_read_only": shortages.disk_read_only("state", killing.daemon),
    "server_disk_full": shortages.disk_full("data"),
    "daemon_disk_full": shortages.disk_full("state"),
    "second_daemon": strangers.second_daemon,
    "cloned_daemon": strangers.cloned_daemon,
    "daemon_versions": strangers.daemon_versions,
    "server_versions": strangers.server_versions,
    "restore": restores.restore,
    "server_clock": strangers.clock("server"),
    "daemon_clock": strangers.clock("daemon"),
}


async def carry_out(harm: Harm, faults: list[Fault]) -> None:
    """Do each fault at its time, and return when all are over."""
    began = time.monotonic()
    # A start that takes long makes the next fault of its target late.
    targets: defaultdict[str, asyncio.Lock] = defaultdict(asyncio.Lock)

    async def one(fault: Fault) -> None:
        await asyncio.sleep(max(0.0, began + fault.at - time.monotonic()))
        async with AsyncExitStack() as held:
            for target in sorted(KINDS[fault.kind].targets):
                await held.enter_async_context(targets[target])
            await ACTS[fault.kind](harm, fault)

    async with asyncio.TaskGroup() as group:
        for fault in faults:
            group.create_task(one(fault))
