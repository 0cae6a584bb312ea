"""CHANNEL_LAYERS is empty without a REDIS_URL, and survives silence with one."""

import asyncio
import time

import pytest
from channels_redis.pubsub import RedisPubSubChannelLayer

from config.settings.channel_layer import RedisAddress, channel_layers
from tests.support.databases.redis_server import Redis
from tests.support.waiting import await_until


def test_one_process_needs_no_layer() -> None:
    assert channel_layers("") == {}


@pytest.mark.parametrize(
    "url",
    [
        "host:6379",
        "http://host",
        "redis://h:hush",
        "redis://[::1",
        "redis://:1/hush@host",
        "redis://:1?hush@host",
        "redis://:1#hush@host",
    ],
)
def test_an_address_that_is_none_of_redis_is_refused(url: str) -> None:
    with pytest.raises(ValueError, match="like redis://") as refused:
        RedisAddress("REDIS_URL", "", "").parse(url)
    assert "hush" not in str(refused.value)


async def test_a_subscriber_idle_beyond_the_client_timeouts_still_hears() -> None:
    redis = Redis().start()
    try:
        configured = channel_layers(redis.url)["default"]
        assert configured["BACKEND"] == "channels_redis.pubsub.RedisPubSubChannelLayer"
        layer = RedisPubSubChannelLayer(**configured["CONFIG"])
        channel = await layer.new_channel()
        await layer.group_add("g", channel)
        hearing = asyncio.create_task(layer.receive(channel))
        began = time.monotonic()
        await await_until(
            lambda: time.monotonic() - began > 7,
            30,
            "more time than the client's own default to pass",
        )
        assert not hearing.done()
        # Idle too: the connection that sends.
        await layer.group_send("g", {"type": "doorbell"})
        async with asyncio.timeout(30):
            assert await hearing == {"type": "doorbell"}
        await layer.flush()
    finally:
        redis.remove()
