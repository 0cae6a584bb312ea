"""A call on one server process for a host on another: doorbells go through Redis."""

from collections.abc import Iterator

import pytest

from tests.support.databases.cluster import Backends, Cluster, running_cluster

_NET_SECONDS = 100
"""Longer than any call waits, so every call that is answered in time was woken by a doorbell."""
_TURNS = 5


@pytest.fixture
def without_a_net(backends: Backends) -> Iterator[Cluster]:
    """A cluster whose waiters look at the database too seldom to notice a lost doorbell."""
    net = {"HOLDLINE_SAFETY_NET_SECONDS": str(_NET_SECONDS)}
    with running_cluster(backends=backends, server_environment=net) as started:
        yield started


async def test_a_doorbell_wakes_hosts_and_waiting_calls_in_other_processes(
    without_a_net: Cluster,
) -> None:
    cluster = without_a_net
    for number in range(cluster.WORKER_COUNT):
        woken = 0
        async with (
            cluster.caller_at(number) as caller,
            caller.terminal("cat", wait_seconds=5) as session,
        ):
            await session.until("awaiting_input", 120)
            for turn in range(_TURNS):
                answer = await session.send(f"word{turn}\n", wait_seconds=20)
                woken += answer["state"] == "awaiting_input"
                await session.until("awaiting_input", 120)
        # On a busy machine a process may stand still for a second and miss a doorbell.
        assert woken > _TURNS / 2
