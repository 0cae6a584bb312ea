"""Server processes whose clocks are minutes apart, and minutes off the database's clock.

Every caller reaches the host through each of them.
"""

import asyncio

import pytest

from tests.support.databases.cluster import Cluster
from tests.support.waiting import await_until

pytestmark = pytest.mark.fault

SKEW_SECONDS = 120.0
"""Four times the length of a lease, and longer than a start stays valid."""


async def test_server_processes_with_wrong_clocks_serve_every_caller(cluster: Cluster) -> None:
    wrong = {"DJANGO_SETTINGS_MODULE": "tests.support.databases.skewed_settings"}
    slow, fast = ({**wrong, "SKEW_SECONDS": str(skew)} for skew in (-SKEW_SECONDS, SKEW_SECONDS))
    try:
        # The workers are replaced one after the other, so that the host always finds one.
        await asyncio.to_thread(cluster.kill_worker, 0)
        await asyncio.to_thread(cluster.start_worker, 0, **slow)
        await asyncio.to_thread(cluster.kill_worker, 1)
        await _connected(cluster, 0)
        await asyncio.to_thread(cluster.start_worker, 1, **fast)
        for number in range(2):
            await _converse(cluster, number)
        await asyncio.to_thread(cluster.kill_worker, 0)
        await _connected(cluster, 1)
        await asyncio.to_thread(cluster.start_worker, 0, **slow)
        for number in range(2):
            await _converse(cluster, number)
    finally:
        for number in range(2):
            await asyncio.to_thread(cluster.kill_worker, number)
            await asyncio.to_thread(cluster.launch_worker, number)
        for number in range(2):
            await asyncio.to_thread(cluster.await_worker, number)


async def _connected(cluster: Cluster, number: int) -> None:
    port = cluster.worker_ports[number]
    await await_until(
        lambda: cluster.balancer.sockets[-1:] == [port],
        120,
        f"the host to be connected to worker {number}",
    )


async def _converse(cluster: Cluster, number: int) -> None:
    """A session and a one-shot to their ends, through this worker."""
    async with cluster.caller_at(number) as caller:
        session = await caller.start("bash -c 'read x; echo got $x; exit 3'", wait_seconds=30)
        ended = await session.send("it\n", wait_seconds=30)
        assert (ended["state"], ended["exit_code"]) == ("exited", 3)
        assert "got it" in ended["output"]
        done = await caller.call("execute_command", command="echo done", timeout_seconds=45)
        assert done["stdout"].strip() == "done"
