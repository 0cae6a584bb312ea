"""A call on one server process, a host on another: doorbells go through Redis."""

from collections.abc import Iterator

import pytest

from tests.support.cluster import Backends, Cluster, running_cluster

_NET_SECONDS = 100
"""So long that whatever is answered in time was woken by a doorbell."""
_TURNS = 5


@pytest.fixture
def without_a_net(backends: Backends) -> Iterator[Cluster]:
    """A cluster in which a lost doorbell is not made up for."""
    net = {"HOLDLINE_SAFETY_NET_SECONDS": str(_NET_SECONDS)}
    with running_cluster(backends=backends, server_environment=net) as started:
        yield started


async def test_a_doorbell_wakes_the_host_of_another_process_and_the_call_that_waits_there(without_a_net: Cluster) -> None:
    cluster = without_a_net
    for number in range(cluster.WORKER_COUNT):
        woken = 0
        async with cluster.caller_at(number) as caller, caller.terminal("cat", wait_seconds=5) as session:
            await session.until("awaiting_input", 120)
            for turn in range(_TURNS):
                answer = await session.send(f"word{turn}\n", wait_seconds=20)
                woken += answer["state"] == "awaiting_input"
                await session.until("awaiting_input", 120)
        # A process that stands still for a second on a busy machine may miss one.
        assert woken > _TURNS / 2
