"""Measure a steady load of turns while a process dies: its rate, and the longest stall.

``python -m benchmarks.faults``

The load is that of the fault tests: real programs whose answers, bytes, inputs and exit codes are
all checked to the end. A wrong one fails the run. The rate is measured before the fault and after
it; a stall is the longest turn of all.
"""

import asyncio
import tempfile
import time
from collections.abc import Awaitable, Callable
from pathlib import Path

from benchmarks.harness import arguments, machine
from tests.support.databases.cluster import Cluster, running_backends, running_cluster
from tests.support.load import Load, steady_load

Fault = Callable[[Cluster, float], Awaitable[None]]


async def _server_with_the_socket(cluster: Cluster, _outage: float) -> None:
    await _kill(cluster, cluster.socket_worker())


async def _server_without_it(cluster: Cluster, _outage: float) -> None:
    await _kill(cluster, cluster.other_worker())


async def _kill(cluster: Cluster, victim: int) -> None:
    await asyncio.to_thread(cluster.kill_worker, victim)
    await asyncio.to_thread(cluster.start_worker, victim)


async def _redis_restart(cluster: Cluster, _outage: float) -> None:
    await asyncio.to_thread(cluster.backends.redis.restart)


async def _redis_outage(cluster: Cluster, outage: float) -> None:
    await asyncio.to_thread(cluster.backends.redis.kill)
    await asyncio.sleep(outage)
    await asyncio.to_thread(cluster.backends.redis.start)


async def _redis_stands_still(cluster: Cluster, outage: float) -> None:
    cluster.backends.redis.pause()
    try:
        await asyncio.sleep(outage)
    finally:
        cluster.backends.redis.resume()


async def _postgresql_restart(cluster: Cluster, _outage: float) -> None:
    await asyncio.to_thread(cluster.backends.postgres.restart)


async def _postgresql_outage(cluster: Cluster, outage: float) -> None:
    await asyncio.to_thread(cluster.backends.postgres.stop)
    await asyncio.sleep(outage)
    await asyncio.to_thread(cluster.backends.postgres.start)


FAULTS: dict[str, Fault] = {
    "kill -9 of the server process with the socket": _server_with_the_socket,
    "kill -9 of the other server process": _server_without_it,
    "Redis restarted": _redis_restart,
    "Redis away": _redis_outage,
    "Redis stopped (SIGSTOP)": _redis_stands_still,
    "PostgreSQL restarted (immediate)": _postgresql_restart,
    "PostgreSQL away": _postgresql_outage,
}


async def _rate(load: Load, seconds: float) -> float:
    """Return the turns per second over the next ``seconds``."""
    before, began = load.turns, time.monotonic()
    await asyncio.sleep(seconds)
    return (load.turns - before) / (time.monotonic() - began)


async def _one(
    cluster: Cluster, what: str, fault: Fault, rate: float, seconds: float, outage: float
) -> None:
    with tempfile.TemporaryDirectory() as directory:
        async with steady_load(cluster, Path(directory), what=what, turns_per_second=rate) as load:
            before, usual = await _rate(load, seconds), load.slowest_seconds
            await fault(cluster, outage)
            await load.progress()
            after = await _rate(load, seconds)
    print(f"   {before:.0f}/s before (longest turn {usual:.2f} s), {after:.0f}/s after", flush=True)


def main() -> None:
    """Print the rate and the longest stall of every fault.

    The load is ``--rate`` turns per second, for ``--seconds`` before and after the fault.
    """
    options = arguments(main.__doc__ or "", rate=50.0, seconds=5.0, outage=30.0)
    print(machine(), flush=True)
    with (
        running_backends(is_durable=True) as backends,
        running_cluster(backends=backends) as cluster,
    ):
        for what, fault in FAULTS.items():
            asyncio.run(_one(cluster, what, fault, options.rate, options.seconds, options.outage))


if __name__ == "__main__":
    main()
