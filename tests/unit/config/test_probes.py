"""Liveness, readiness and metrics, as load balancers and Prometheus ask for them."""

import json
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from typing import Any

import pytest
from django.db import connection

from config import probes
from controller_client.protocol.messages import SendInput
from projects.process import draining
from projects.sessions import outbox
from projects.storage.probe import try_write
from tests.support.rows import make_controller, make_session
from tests.support.waiting import await_until

pytestmark = pytest.mark.django_db(transaction=True)


async def _get(
    path: str, *, client: str = "127.0.0.1", method: str = "GET", **headers: str
) -> tuple[int, bytes]:
    sent: list[dict[str, Any]] = []

    async def send(message: dict[str, Any]) -> None:
        sent.append(message)

    headers = {"host": "localhost:8000", **headers}
    named = [(name.replace("_", "-").encode(), value.encode()) for name, value in headers.items()]
    await probes.application(
        {"path": path, "method": method, "headers": named, "client": (client, 1)}, send
    )
    return sent[0]["status"], sent[1]["body"]


@pytest.fixture
def stopping() -> Iterator[None]:
    """Begin the stop of this process, and forget it after the test."""
    draining.begin(0.0)
    yield
    draining.reset()


@pytest.fixture(autouse=True)
def _fresh_census(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(probes, "CENSUS_SECONDS", 0.0)
    monkeypatch.setattr(probes._last, "asking", None)


async def test_a_process_is_alive_while_its_event_loop_runs() -> None:
    assert await _get("/healthz") == (200, b'{"status": "ok"}')


async def test_ready_while_the_database_answers() -> None:
    status, body = await _get("/readyz")
    assert (status, json.loads(body)) == (
        200,
        {"status": "ok", "database": "up", "channel_layer": "up"},
    )


@pytest.mark.sqlite
async def test_a_read_only_database_is_not_ready() -> None:
    with closing(sqlite3.connect(connection.settings_dict["NAME"], isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        status, body = await _get("/readyz")
        assert (status, json.loads(body)["database"]) == (503, "down")
        other.execute("ROLLBACK")
    await await_until(_is_ready, 30, "it to be ready again")


async def _is_ready() -> bool:
    return (await _get("/readyz"))[0] == 200


async def test_many_readiness_probes_cause_one_write(monkeypatch: pytest.MonkeyPatch) -> None:
    writes: list[None] = []
    monkeypatch.setattr(probes, "try_write", lambda: writes.append(try_write()))
    monkeypatch.setattr(probes, "ANSWER_SECONDS", 60.0)
    assert {(await _get("/readyz"))[0] for _ in range(20)} == {200}
    assert writes == [None]


async def test_a_lost_channel_layer_is_degraded_and_still_ready(settings: Any) -> None:
    settings.CHANNEL_LAYERS = {
        "default": {
            "BACKEND": "channels_redis.pubsub.RedisPubSubChannelLayer",
            "CONFIG": {"hosts": ["redis://127.0.0.1:1"]},
        }
    }
    status, body = await _get("/readyz")
    assert (status, json.loads(body)) == (
        200,
        {"status": "degraded", "database": "up", "channel_layer": "down"},
    )


async def test_a_lost_database_is_not_ready_and_the_answer_says_which_part(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def down() -> bool:
        return False

    monkeypatch.setattr(probes, "_is_database_up", down)
    status, body = await _get("/readyz")
    assert (status, json.loads(body)) == (
        503,
        {"status": "unavailable", "database": "down", "channel_layer": "up"},
    )


@pytest.mark.usefixtures("stopping")
async def test_a_process_that_is_being_stopped_is_alive_and_not_ready() -> None:
    assert await _get("/readyz") == (503, b'{"status": "draining"}')
    assert (await _get("/healthz"))[0] == 200


async def test_probes_accept_only_get_and_head() -> None:
    assert (await _get("/metrics", method="POST"))[0] == 405


@pytest.mark.parametrize(
    ("host", "status"),
    [("evil.example", 421), ("", 421), ("10.0.0.5:8000", 421), ("127.0.0.1:9", 200)],
)
async def test_metrics_answer_to_served_names_and_health_to_any(
    host: str, status: int, settings: Any
) -> None:
    assert (await _get("/metrics", host=host))[0] == status
    assert (await _get("/healthz", host=host))[0] == 200
    settings.METRICS_TOKEN = "m" * 30
    assert (await _get("/metrics", host=host, authorization=f"Bearer {settings.METRICS_TOKEN}"))[
        0
    ] == status


async def test_metrics_are_served_to_localhost_but_not_through_a_proxy() -> None:
    status, body = await _get("/metrics")
    assert status == 200
    assert b"process_resident_memory_bytes" in body
    assert (await _get("/metrics", client="192.0.2.1"))[0] == 404
    assert (await _get("/metrics", x_forwarded_for="192.0.2.1"))[0] == 404


async def test_metrics_with_a_token_need_the_token(settings: Any) -> None:
    settings.METRICS_TOKEN = "scrape"
    assert (await _get("/metrics"))[0] == 404
    assert (await _get("/metrics", client="192.0.2.1", authorization="Bearer scrape"))[0] == 200
    assert (await _get("/metrics", authorization="Bearer other"))[0] == 404


async def test_metrics_without_a_token_can_be_turned_off(settings: Any) -> None:
    settings.LOCAL_METRICS = False
    assert (await _get("/metrics"))[0] == 404


async def test_sessions_and_the_outbox_are_counted_when_asked_for() -> None:
    from asgiref.sync import sync_to_async

    def act() -> None:
        controller = make_controller()
        session = make_session(controller)
        seq = outbox.allocate_seq(controller.id)
        message = SendInput(seq=seq, session_id=str(session.id), input_seq=1, data=b"x")
        outbox.enqueue(controller_id=controller.id, session_id=session.id, message=message)

    await sync_to_async(act)()
    lines = (await _get("/metrics"))[1].decode().splitlines()
    assert 'holdline_sessions{state="RUNNING"} 1.0' in lines
    assert "holdline_outbox_commands 1.0" in lines
    assert (
        next(
            float(line.split()[1])
            for line in lines
            if line.startswith("holdline_outbox_oldest_seconds ")
        )
        >= 0.0
    )
