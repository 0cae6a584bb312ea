"""The number of connections to PostgreSQL, and turns while no connection is free."""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import httpx2
import psycopg
import pytest

from tests.support.databases.cluster import Cluster
from tests.support.load import steady_load

_REQUESTS = 100
_THREADS = 8 + 2
"""Database threads of a server process, for short and for long work."""


def _connections(cluster: Cluster) -> int:
    query = "SELECT count(*) FROM pg_stat_activity WHERE datname LIKE 'stack%'"
    return int(cluster.backends.postgres.execute(query)[0][0])


async def test_pages_leave_no_connection_behind(cluster: Cluster) -> None:
    before = _connections(cluster)
    # The cookie names a session that Django has to look up in the database.
    cookies = {"sessionid": "a" * 32}
    async with httpx2.AsyncClient(cookies=cookies, timeout=60) as http:
        for _ in range(_REQUESTS):
            answer = await http.get(f"http://127.0.0.1:{cluster.port}/admin/login/")
            assert answer.status_code == 200
    assert _connections(cluster) <= before + cluster.WORKER_COUNT * _THREADS


@contextmanager
def _all_taken(cluster: Cluster) -> Iterator[int]:
    """Other clients hold every free connection in the block; the value is their number."""
    taken: list[psycopg.Connection] = []
    try:
        with suppress(psycopg.OperationalError):
            while True:
                taken.append(
                    psycopg.connect(cluster.backends.postgres.url("postgres"), connect_timeout=20)
                )
        yield len(taken)
    finally:
        for connection in taken:
            connection.close()


@pytest.mark.fault
async def test_turns_go_on_while_postgresql_has_no_free_connection(
    cluster: Cluster, tmp_path: Path
) -> None:
    async with steady_load(cluster, tmp_path, what="no more connections to PostgreSQL") as load:
        with _all_taken(cluster) as taken:
            assert taken > 0
            await load.progress()
            # A worker without a connection reports that it is not ready; the other one works.
            number = cluster.other_worker()
            await asyncio.to_thread(cluster.kill_worker, number)
            await load.progress()
        await asyncio.to_thread(cluster.start_worker, number)
        await load.progress()
