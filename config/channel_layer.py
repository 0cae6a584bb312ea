"""What carries doorbells between server processes: Redis when there is a REDIS_URL, nothing otherwise."""

from typing import Any, Final

# Redis is only a doorbell: one that hangs may hold nobody up for long, and redis-py's own defaults do not suit that.
_SOCKET_SECONDS: Final = 1.0
_HEALTH_CHECK_SECONDS: Final = 5


def channel_layers(redis_url: str) -> dict[str, Any]:
    """Django's CHANNEL_LAYERS. One process needs no layer.

    Pub/sub survives a restart of Redis by itself. A subscriber that hears nothing asks whether somebody is still there. A failed
    command is not repeated behind our backs: that would take seconds.
    """
    if not redis_url:
        return {}
    # Loaded only where it is used: it takes a tenth of a second.
    from redis.asyncio.retry import Retry
    from redis.backoff import NoBackoff

    host = {
        "address": redis_url,
        "socket_timeout": _SOCKET_SECONDS,
        "socket_connect_timeout": _SOCKET_SECONDS,
        "health_check_interval": _HEALTH_CHECK_SECONDS,
        "retry": Retry(NoBackoff(), 0),
    }
    return {"default": {"BACKEND": "channels_redis.pubsub.RedisPubSubChannelLayer", "CONFIG": {"hosts": [host], "prefix": "holdline"}}}
