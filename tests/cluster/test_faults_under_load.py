"""Deaths of servers, Redis and PostgreSQL under a steady load of turns.

No byte and no input is lost or doubled, and no exit code and no answer is wrong. The longest stall
of each fault is printed (``-rP``). It is not checked, because it depends on the machine.
"""

import asyncio
from pathlib import Path

import pytest

from tests.support.databases.cluster import Cluster
from tests.support.load import steady_load
from tests.support.waiting import await_until

pytestmark = pytest.mark.fault

_SHORT_OUTAGE_SECONDS = 3.0
_LONG_OUTAGE_SECONDS = 30.0


@pytest.fixture
def outage_seconds(is_long: bool) -> float:
    """The length of an outage, in seconds."""
    return _LONG_OUTAGE_SECONDS if is_long else _SHORT_OUTAGE_SECONDS


async def _passed(seconds: float) -> None:
    """Return after ``seconds`` of the outage, during which there is no condition to wait for."""
    end = asyncio.get_running_loop().time() + seconds
    await await_until(
        lambda: asyncio.get_running_loop().time() > end, seconds + 60, "the outage to last"
    )


def _epoch(cluster: Cluster) -> int:
    return cluster.database.controller_epoch(cluster.provisioned.controller)


@pytest.mark.parametrize("which", ["with_the_socket", "without_it"])
async def test_killing_either_server_process(cluster: Cluster, tmp_path: Path, which: str) -> None:
    async with steady_load(cluster, tmp_path, what=f"server process {which} killed") as load:
        epoch = _epoch(cluster)
        victim = cluster.socket_worker() if which == "with_the_socket" else cluster.other_worker()
        await asyncio.to_thread(cluster.kill_worker, victim)
        await load.progress()
        await asyncio.to_thread(cluster.start_worker, victim)
        await load.progress()
        assert (_epoch(cluster) > epoch) == (which == "with_the_socket")


async def test_redis_is_full_and_restarts_and_later_is_away_for_a_while(
    cluster: Cluster, tmp_path: Path, outage_seconds: float
) -> None:
    async with steady_load(
        cluster, tmp_path, what=f"Redis full, restarted, then away for {outage_seconds:.0f} s"
    ) as load:
        epoch = _epoch(cluster)
        # Redis is full first, and takes no message.
        cluster.backends.redis.ask("CONFIG SET maxmemory 1")
        await load.progress()
        await asyncio.to_thread(cluster.backends.redis.restart)
        await load.progress()
        await asyncio.to_thread(cluster.backends.redis.kill)
        await _passed(outage_seconds)
        await load.progress()
        await asyncio.to_thread(cluster.backends.redis.start)
        await load.progress()
        assert _epoch(cluster) == epoch, "no socket was closed"


async def test_redis_is_stopped_for_a_while(
    cluster: Cluster, tmp_path: Path, outage_seconds: float
) -> None:
    async with steady_load(
        cluster, tmp_path, what=f"Redis stopped for {outage_seconds:.0f} s"
    ) as load:
        epoch = _epoch(cluster)
        cluster.backends.redis.pause()
        try:
            await _passed(outage_seconds)
            await load.progress()
        finally:
            cluster.backends.redis.resume()
        await load.progress()
        assert _epoch(cluster) == epoch


async def test_postgresql_crashes_and_later_is_away_for_a_while(
    cluster: Cluster, tmp_path: Path, outage_seconds: float
) -> None:
    async with steady_load(
        cluster, tmp_path, what=f"PostgreSQL crashed, then away for {outage_seconds:.0f} s"
    ) as load:
        epoch = _epoch(cluster)
        await asyncio.to_thread(cluster.backends.postgres.restart)
        await load.progress()
        assert _epoch(cluster) == epoch, "no socket was closed"
        await asyncio.to_thread(cluster.backends.postgres.stop)
        await _passed(outage_seconds)
        await asyncio.to_thread(cluster.backends.postgres.start)
        await load.progress()
