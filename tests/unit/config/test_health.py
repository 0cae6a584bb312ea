"""Liveness and readiness."""

import pytest
from channels.layers import get_channel_layer
from django.test import AsyncClient

pytestmark = pytest.mark.django_db(transaction=True)


async def test_a_process_that_turns_is_alive(async_client: AsyncClient) -> None:
    response = await async_client.get("/healthz")
    assert (response.status_code, response.json()) == (200, {"status": "ok"})


async def test_ready_while_the_database_answers(async_client: AsyncClient) -> None:
    response = await async_client.get("/readyz")
    assert (response.status_code, response.json()["status"]) == (200, "ok")


async def test_a_lost_channel_layer_is_degraded_and_still_ready(async_client: AsyncClient, settings: object) -> None:
    settings.CHANNEL_LAYERS = {  # type: ignore[attr-defined]
        "default": {"BACKEND": "channels_redis.pubsub.RedisPubSubChannelLayer", "CONFIG": {"hosts": ["redis://127.0.0.1:1"]}}
    }
    response = await async_client.get("/readyz")
    assert (response.status_code, response.json()) == (200, {"status": "degraded", "database": "up", "channel_layer": "down"})
    assert get_channel_layer() is not None


async def test_pages_carry_a_content_security_policy(async_client: AsyncClient) -> None:
    response = await async_client.get("/healthz")
    assert "default-src 'self'" in response.headers["Content-Security-Policy"]
