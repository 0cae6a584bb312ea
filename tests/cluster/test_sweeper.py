"""Of two server processes one sweeps. When it dies, the other takes over."""

import asyncio
from collections.abc import Iterator

import pytest

from tests.support.databases.cluster import Backends, Cluster, running_cluster
from tests.support.waiting import await_until

_QUICK = {"HOLDLINE_SWEEP_SECONDS": "0.5", "HOLDLINE_BACKGROUND_IDLE_SECONDS": "1"}
_DEADLINE_SECONDS = 120


@pytest.fixture
def sweeping(backends: Backends) -> Iterator[Cluster]:
    """A cluster that sweeps often and ends background sessions soon."""
    with running_cluster(backends=backends, server_environment=_QUICK) as started:
        yield started


def _holder(cluster: Cluster) -> str:
    rows = cluster.database.rows("SELECT holder FROM projects_duty WHERE name = 'sweeper'")
    return str(rows[0][0]) if rows else ""


async def _awake(cluster: Cluster) -> None:
    """Make every process serve a call, so that its tasks run."""
    for number in range(cluster.WORKER_COUNT):
        async with cluster.caller_at(number) as caller:
            await caller.call("list_controllers")


async def _is_swept(cluster: Cluster) -> None:
    """Check that an idle session is ended by the process that sweeps now."""
    async with cluster.caller() as caller:
        session_id = (await caller.call("start_command", command="sleep 1000"))["sessionId"]
    await await_until(
        lambda: cluster.database.state(session_id) == "TERMINATED",
        _DEADLINE_SECONDS,
        "the idle session to be ended",
    )


@pytest.mark.fault
async def test_the_other_process_replaces_a_killed_sweeper(sweeping: Cluster) -> None:
    await _awake(sweeping)
    await _is_swept(sweeping)
    first = _holder(sweeping)
    # One of the two kills hits the process that sweeps, so another one sweeps afterwards.
    for number in range(sweeping.WORKER_COUNT):
        await asyncio.to_thread(sweeping.kill_worker, number)
        await _is_swept(sweeping)
        await asyncio.to_thread(sweeping.start_worker, number)
        await _awake(sweeping)
    assert _holder(sweeping) not in {"", first}
