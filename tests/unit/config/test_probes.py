"""Liveness, readiness and metrics, as machines ask for them."""

import json
from collections.abc import Iterator
from typing import Any

import pytest

from config import probes
from controller_client.protocol.messages import SendInput
from projects import dispatch, draining
from tests.support.rows import make_controller, make_session

pytestmark = pytest.mark.django_db(transaction=True)


async def _get(path: str, *, client: str = "127.0.0.1", method: str = "GET", **headers: str) -> tuple[int, bytes]:
    sent: list[dict[str, Any]] = []

    async def send(message: dict[str, Any]) -> None:
        sent.append(message)

    named = [(name.replace("_", "-").encode(), value.encode()) for name, value in headers.items()]
    await probes.application({"path": path, "method": method, "headers": named, "client": (client, 1)}, send)
    return sent[0]["status"], sent[1]["body"]


@pytest.fixture
def stopping() -> Iterator[None]:
    """A process that was told to stop."""
    draining.begin(0.0)
    yield
    draining.reset()


@pytest.fixture(autouse=True)
def _fresh_census(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(probes, "CENSUS_SECONDS", 0.0)


async def test_a_process_that_turns_is_alive() -> None:
    assert await _get("/healthz") == (200, b'{"status": "ok"}')


async def test_ready_while_the_database_answers() -> None:
    status, body = await _get("/readyz")
    assert (status, json.loads(body)) == (200, {"status": "ok", "database": "up", "channel_layer": "up"})


async def test_a_lost_channel_layer_is_degraded_and_still_ready(settings: Any) -> None:
    settings.CHANNEL_LAYERS = {
        "default": {"BACKEND": "channels_redis.pubsub.RedisPubSubChannelLayer", "CONFIG": {"hosts": ["redis://127.0.0.1:1"]}}
    }
    status, body = await _get("/readyz")
    assert (status, json.loads(body)) == (200, {"status": "degraded", "database": "up", "channel_layer": "down"})


async def test_a_lost_database_is_not_ready_and_the_answer_says_which_part(monkeypatch: pytest.MonkeyPatch) -> None:
    async def down() -> bool:
        return False

    monkeypatch.setattr(probes, "_is_database_up", down)
    status, body = await _get("/readyz")
    assert (status, json.loads(body)) == (503, {"status": "unavailable", "database": "down", "channel_layer": "up"})


@pytest.mark.usefixtures("stopping")
async def test_a_process_that_is_being_stopped_is_alive_and_not_ready() -> None:
    assert await _get("/readyz") == (503, b'{"status": "draining"}')
    assert (await _get("/healthz"))[0] == 200


async def test_probes_are_only_asked() -> None:
    assert (await _get("/metrics", method="POST"))[0] == 405


async def test_metrics_are_for_the_machine_itself_and_not_for_those_a_proxy_speaks_for() -> None:
    status, body = await _get("/metrics")
    assert status == 200
    assert b"process_resident_memory_bytes" in body
    assert (await _get("/metrics", client="192.0.2.1"))[0] == 404
    assert (await _get("/metrics", x_forwarded_for="192.0.2.1"))[0] == 404


async def test_metrics_with_a_token_are_for_whoever_shows_it(settings: Any) -> None:
    settings.METRICS_TOKEN = "scrape"
    assert (await _get("/metrics"))[0] == 404
    assert (await _get("/metrics", client="192.0.2.1", authorization="Bearer scrape"))[0] == 200
    assert (await _get("/metrics", authorization="Bearer other"))[0] == 404


async def test_metrics_without_a_token_may_be_for_nobody(settings: Any) -> None:
    settings.LOCAL_METRICS = False
    assert (await _get("/metrics"))[0] == 404


async def test_sessions_and_the_outbox_are_counted_when_asked_for() -> None:
    from asgiref.sync import sync_to_async

    def act() -> None:
        controller = make_controller()
        session = make_session(controller)
        seq, _, _ = dispatch.allocate_seq(controller.id)
        message = SendInput(seq=seq, session_id=str(session.id), input_seq=1, data=b"x")
        dispatch.enqueue(controller_id=controller.id, session_id=session.id, message=message)

    await sync_to_async(act)()
    lines = (await _get("/metrics"))[1].decode().splitlines()
    assert 'holdline_sessions{state="RUNNING"} 1.0' in lines
    assert "holdline_outbox_commands 1.0" in lines
    assert next(float(line.split()[1]) for line in lines if line.startswith("holdline_outbox_oldest_seconds ")) >= 0.0
