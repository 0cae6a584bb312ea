"""Server processes whose clocks are minutes apart, and from the database's: any caller reaches the host through any of them."""

import asyncio

import pytest

from tests.support.cluster import Cluster
from tests.support.waiting import await_until

pytestmark = pytest.mark.fault

SKEW_SECONDS = 120.0
"""Four times what a lease runs, and more than a start may take."""


@pytest.mark.parametrize("skew", [-SKEW_SECONDS, SKEW_SECONDS], ids=["slow", "fast"])
async def test_a_process_with_a_wrong_clock_serves_and_is_served(cluster: Cluster, skew: float) -> None:
    try:
        for number in range(2):
            await asyncio.to_thread(cluster.kill_worker, number)
        wrong = {"DJANGO_SETTINGS_MODULE": "tests.support.skewed_settings", "SKEW_SECONDS": str(skew)}
        # Alone at first: so the host is connected to it.
        await asyncio.to_thread(cluster.start_worker, 0, **wrong)
        await _connected(cluster, 0)
        await asyncio.to_thread(cluster.start_worker, 1)
        await _converse(cluster, 0)
        await _converse(cluster, 1)
        # The other way round: the host is with the one that is right.
        await asyncio.to_thread(cluster.kill_worker, 0)
        await _connected(cluster, 1)
        await asyncio.to_thread(cluster.start_worker, 0, **wrong)
        await _converse(cluster, 0)
        await _converse(cluster, 1)
    finally:
        await asyncio.to_thread(cluster.kill_worker, 0)
        await asyncio.to_thread(cluster.start_worker, 0)


async def _connected(cluster: Cluster, number: int) -> None:
    port = cluster.worker_ports[number]
    await await_until(lambda: cluster.balancer.sockets[-1:] == [port], 120, f"the host to be connected to worker {number}")


async def _converse(cluster: Cluster, number: int) -> None:
    """A start, a turn, a command to its end and a look back, through this worker."""
    async with cluster.caller_at(number) as caller:
        session = await caller.start("bash -c 'read x; echo got $x; exit 3'", wait_seconds=20)
        ended = await session.send("it\n", wait_seconds=20)
        assert (ended["state"], ended["exit_code"]) == ("exited", 3)
        assert "got it" in ended["output"]
        done = await caller.call("execute_command", command="echo done", timeout_seconds=20)
        assert done["stdout"].strip() == "done"
