"""Servers that start before their database and Redis: they wait, report it, and do not crash."""

import asyncio
import json
import urllib.error
import urllib.request
from collections.abc import Iterator
from typing import Any

import httpx2
import pytest

from controller_client.protocol.limits import CloseCode
from projects.errors.server import StorageUnavailable
from tests.support.databases.cluster import Backends, Cluster
from tests.support.hosts.scripted_controller import scripted_controller
from tests.support.management import manage
from tests.support.mcp.requests import modern
from tests.support.waiting import await_until

pytestmark = pytest.mark.fault

_DEADLINE_SECONDS = 90
_NOTHING = (503, {"status": "unavailable", "database": "down", "channel_layer": "down"})
_NO_DATABASE = (503, {"status": "unavailable", "database": "down", "channel_layer": "up"})
_NO_REDIS = (200, {"status": "degraded", "database": "up", "channel_layer": "down"})
_WHOLE = (200, {"status": "ok", "database": "up", "channel_layer": "up"})


def _readiness(cluster: Cluster, number: int) -> tuple[int, dict[str, Any]]:
    try:
        with urllib.request.urlopen(
            f"http://127.0.0.1:{cluster.worker_ports[number]}/readyz", timeout=60
        ) as answer:
            return answer.status, json.load(answer)
    except urllib.error.HTTPError as error:
        with error:
            return error.code, json.load(error)


async def _await_readiness(cluster: Cluster, expected: tuple[int, dict[str, Any]]) -> None:
    for number in range(cluster.WORKER_COUNT):

        async def is_so(number: int = number) -> bool:
            return await asyncio.to_thread(_readiness, cluster, number) == expected

        await await_until(is_so, _DEADLINE_SECONDS, f"worker {number} to say {expected}")


async def _refused_for_now(cluster: Cluster) -> bool:
    body, headers = modern("list_controllers")
    accept = {
        "accept": "application/json, text/event-stream",
        "authorization": f"Bearer {cluster.provisioned.token}",
    }
    async with httpx2.AsyncClient(timeout=60) as http:
        answer = await http.post(cluster.worker_url(0), json=body, headers={**accept, **headers})
    return answer.status_code == 503 and "retry-after" in answer.headers


async def _turns(cluster: Cluster) -> None:
    """Take one turn through each worker."""
    for number in range(cluster.WORKER_COUNT):
        async with (
            cluster.caller_at(number) as caller,
            caller.terminal("cat", wait_seconds=25) as session,
        ):
            await session.until("awaiting_input", _DEADLINE_SECONDS)
            await session.send("word\n", wait_seconds=25)
            await session.until("awaiting_input", _DEADLINE_SECONDS)
            assert session.seen.split() == ["word", "word"]


@pytest.fixture
def alone(backends: Backends) -> Iterator[Cluster]:
    """A stopped cluster whose backends are stopped too; they run again after the test."""
    cluster = Cluster(backends=backends)
    backends.redis.kill()
    backends.postgres.stop()
    try:
        yield cluster
    finally:
        backends.start_again()
        cluster.stop()


async def test_servers_find_their_database_and_redis_whenever_these_come_and_go(
    alone: Cluster,
) -> None:
    backends = alone.backends
    await asyncio.to_thread(alone.start_server)
    await _await_readiness(alone, _NOTHING)
    assert await _refused_for_now(alone)
    # PostgreSQL refuses connections with another message while it starts.
    backends.postgres.start_only()
    await _await_readiness(alone, _NO_REDIS)
    await asyncio.to_thread(alone.start_daemon)
    await _turns(alone)
    await asyncio.to_thread(backends.redis.start)
    await _await_readiness(alone, _WHOLE)
    await asyncio.to_thread(backends.postgres.stop)
    await _await_readiness(alone, _NO_DATABASE)
    assert await _refused_for_now(alone)
    await asyncio.to_thread(backends.postgres.start)
    await _await_readiness(alone, _WHOLE)
    await _turns(alone)
    assert all(process.poll() is None for process in alone.server_processes()), (
        "the same processes all the time"
    )


async def _status(cluster: Cluster, path: str, *, method: str = "POST", **request: Any) -> int:
    async with httpx2.AsyncClient(timeout=90) as http:
        return (
            await http.request(
                method, f"http://127.0.0.1:{cluster.worker_ports[0]}{path}", **request
            )
        ).status_code


async def _call_status(
    cluster: Cluster,
    token: str,
    tool: str = "list_controllers",
    arguments: dict[str, Any] | None = None,
) -> int:
    body, headers = modern(tool, arguments)
    shown = {
        **headers,
        "accept": "application/json, text/event-stream",
        "authorization": f"Bearer {token}",
    }
    return await _status(cluster, "/mcp", json=body, headers=shown)


async def _how_a_socket_ends(cluster: Cluster) -> tuple[int | None, list[str]]:
    """The close code and the errors that a daemon with the right credential gets."""
    async with scripted_controller(
        cluster.worker_ports[0], cluster.provisioned.credential
    ) as daemon:
        return await daemon.closed(), [error.code for error in daemon.errors]


def _manage(cluster: Cluster, *arguments: str) -> str:
    done = manage(cluster, *arguments)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


@pytest.mark.timeout(600)
async def test_no_outage_of_database_or_redis_lets_in_anyone_refused_before(
    cluster: Cluster,
) -> None:
    """Without the database everybody is refused; without Redis nobody else is let in."""
    good, backends = cluster.provisioned.token, cluster.backends
    code, gone = (
        _manage(cluster, "create_enrolment_code", "first", "late"),
        _manage(cluster, "create_api_token", "first", "--name", "gone"),
    )
    _manage(cluster, "revoke", gone.split("_")[1])
    sessions = "SELECT count(*) FROM projects_commandsession"
    start = (
        "start_interactive_command",
        {"command": "true", "controller": cluster.provisioned.controller, "wait_seconds": 0},
    )
    before = cluster.database.rows(sessions)
    enrol = {"json": {"code": code}, "headers": {"content-type": "application/json"}}
    await asyncio.to_thread(backends.postgres.stop)
    try:
        for token in (good, gone, f"hl_{'0' * 16}_{'A' * 43}"):
            assert await _call_status(cluster, token) == 503
        assert await _call_status(cluster, good, *start) == 503
        assert await _status(cluster, "/controllers/enrol", **enrol) == 503
        assert await _how_a_socket_ends(cluster) == (
            CloseCode.GOING_AWAY,
            [StorageUnavailable.code],
        )
        # The cookie might belong to a logged-in user.
        assert (
            await _status(
                cluster, "/admin/", method="GET", headers={"cookie": "sessionid=" + "a" * 32}
            )
            >= 500
        )
    finally:
        await asyncio.to_thread(backends.postgres.start)
    await _await_readiness(cluster, _WHOLE)
    assert cluster.database.rows(sessions) == before
    await asyncio.to_thread(backends.redis.kill)
    try:
        await _await_readiness(cluster, _NO_REDIS)
        assert [await _call_status(cluster, token) for token in (good, gone)] == [200, 401]
        assert await _status(cluster, "/controllers/enrol", **enrol) == 200, (
            "the code was not used up by what was refused"
        )
        assert await _status(cluster, "/controllers/enrol", **enrol) == 403
    finally:
        await asyncio.to_thread(backends.redis.start)
    await _await_readiness(cluster, _WHOLE)
