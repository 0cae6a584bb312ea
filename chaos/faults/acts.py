"""Every fault as it is done, and the doing of a whole schedule."""

import asyncio
import time
from collections import defaultdict
from contextlib import AsyncExitStack
from signal import SIGINT, SIGKILL, SIGTERM
from typing import Final

from chaos.faults import networks, shortages, signals, strangers
from chaos.faults.harm import Act, Harm
from chaos.faults.kinds import KINDS
from chaos.faults.schedule import Fault

ACTS: Final[dict[str, Act]] = {
    "server_kill": signals.ending(signals.chosen_server, SIGKILL),
    "server_term": signals.ending(signals.chosen_server, SIGTERM),
    "server_stop": signals.stopping(signals.chosen_server),
    "daemon_kill": signals.ending(signals.daemon, SIGKILL),
    "daemon_term": signals.ending(signals.daemon, SIGTERM),
    "daemon_stop": signals.stopping(signals.daemon),
    "fork_server_kill": signals.fork_server_kill,
    "holder_kill": signals.holder_kill,
    "holder_stop": signals.holder_stop,
    "everything_kill": signals.everything_kill,
    "postgresql_kill": signals.ending(signals.backend("postgresql"), SIGKILL),
    "postgresql_term": signals.ending(signals.backend("postgresql"), SIGINT),
    "postgresql_stop": signals.stopping(signals.backend("postgresql")),
    "redis_kill": signals.ending(signals.backend("redis"), SIGKILL),
    "redis_stop": signals.stopping(signals.backend("redis")),
    "link_cut": networks.cut("link"),
    "link_stall": networks.stall("link"),
    "link_half_open": networks.half_open("link"),
    "link_slow": networks.slow("link"),
    "front_cut": networks.cut("front"),
    "front_stall": networks.stall("front"),
    "front_lossy": networks.lossy("front"),
    "database_cut": networks.cut("database"),
    "database_stall": networks.stall("database"),
    "redis_cut": networks.cut("redis"),
    "redis_stall": networks.stall("redis"),
    "sqlite_lock": shortages.sqlite_lock,
    "server_descriptors": shortages.descriptors(signals.chosen_server),
    "daemon_descriptors": shortages.descriptors(signals.daemon),
    "server_memory": shortages.memory(signals.chosen_server),
    "server_disk_full": shortages.disk_full("data"),
    "daemon_disk_full": shortages.disk_full("state"),
    "second_daemon": strangers.second_daemon,
    "cloned_daemon": strangers.cloned_daemon,
    "daemon_versions": strangers.daemon_versions,
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
