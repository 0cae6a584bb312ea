"""Connections to PostgreSQL: as many as there are threads for it, and what happens when there are no more to be had."""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import httpx2
import psycopg
import pytest

from tests.support.cluster import Cluster
from tests.support.load import steady_load

_REQUESTS = 100
_THREADS = 8 + 2
"""For short and for long work, per server process."""


def _connections(cluster: Cluster) -> int:
    query = "SELECT count(*) FROM pg_stat_activity WHERE datname LIKE 'stack%'"
    return int(cluster.backends.postgres.execute(query)[0][0])


async def test_pages_leave_no_connection_behind(cluster: Cluster) -> None:
    before = _connections(cluster)
    # A session that has to be looked up.
    cookies = {"sessionid": "a" * 32}
    async with httpx2.AsyncClient(cookies=cookies, timeout=60) as http:
        for _ in range(_REQUESTS):
            answer = await http.get(f"http://127.0.0.1:{cluster.port}/admin/login/")
            assert answer.status_code == 200
    assert _connections(cluster) <= before + cluster.WORKER_COUNT * _THREADS


@contextmanager
def _all_taken(cluster: Cluster) -> Iterator[int]:
    """Every connection that is to be had is somebody else's."""
    taken: list[psycopg.Connection] = []
    try:
        with suppress(psycopg.OperationalError):
            while True:
                taken.append(psycopg.connect(cluster.backends.postgres.url("postgres"), connect_timeout=20))
        yield len(taken)
    finally:
        for connection in taken:
            connection.close()


@pytest.mark.fault
async def test_no_more_connections_are_to_be_had(cluster: Cluster, tmp_path: Path) -> None:
    async with steady_load(cluster, tmp_path, what="no more connections to PostgreSQL") as load:
        with _all_taken(cluster) as taken:
            assert taken > 0
            await load.progress()
            # One that has none at all: it says so, and the others do its work.
            number = cluster.other_worker()
            await asyncio.to_thread(cluster.kill_worker, number)
            await load.progress()
        await asyncio.to_thread(cluster.start_worker, number)
        await load.progress()
