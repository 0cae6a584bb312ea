"""Server processes whose clocks are minutes apart, and from the database's: any caller reaches the host through any of them."""

import asyncio

import pytest

from tests.support.cluster import Cluster
from tests.support.waiting import await_until

pytestmark = pytest.mark.fault

SKEW_SECONDS = 120.0
"""Four times what a lease runs, and more than a start may take."""


async def test_processes_with_wrong_clocks_serve_and_are_served(cluster: Cluster) -> None:
    wrong = {"DJANGO_SETTINGS_MODULE": "tests.support.skewed_settings"}
    slow, fast = ({**wrong, "SKEW_SECONDS": str(skew)} for skew in (-SKEW_SECONDS, SKEW_SECONDS))
    try:
        # One after the other, so that the host always finds one.
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
