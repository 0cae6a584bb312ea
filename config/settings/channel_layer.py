"""Django's CHANNEL_LAYERS: Redis carries doorbells between server processes, if there is one."""

from typing import Any, Final
from urllib.parse import urlsplit

from projects.conf.setting import Text

# Redis only carries doorbells, so a Redis that hangs must not delay anybody for long. The defaults
# of redis-py do not suit that.
_SOCKET_SECONDS: Final = 1.0
_HEALTH_CHECK_SECONDS: Final = 5


class RedisAddress(Text):
    """The URL of a Redis server."""

    def parse(self, text: str) -> str:
        """The URL. Doorbells would fail without a word at one that the client does not know."""
        if not text.startswith(("redis://", "rediss://", "unix://")) or not _is_url(text):
            raise ValueError("like redis://:password@host:6379/0")
        return text


def _is_url(text: str) -> bool:
    try:
        parts = urlsplit(text)
        _ = parts.port
    except ValueError:
        return False
    # A password that begins with digits, before one of / ? #, looks like a port.
    return parts.scheme == "unix" or ("@" not in parts.path + parts.query and not parts.fragment)


def channel_layers(redis_url: str) -> dict[str, Any]:
    """The value of CHANNEL_LAYERS; empty without a URL, as one process needs no layer.

    Pub/sub survives a restart of Redis by itself. A silent connection is probed every few
    seconds. A failed command is not retried: the retries of redis-py would take seconds.
    """
    if not redis_url:
        return {}
    # Imported here because the import takes a tenth of a second.
    from redis.asyncio.retry import Retry
    from redis.backoff import NoBackoff

    host = {
        "address": redis_url,
        "socket_timeout": _SOCKET_SECONDS,
        "socket_connect_timeout": _SOCKET_SECONDS,
        "health_check_interval": _HEALTH_CHECK_SECONDS,
        "retry": Retry(NoBackoff(), 0),
    }
    return {
        "default": {
            "BACKEND": "channels_redis.pubsub.RedisPubSubChannelLayer",
            "CONFIG": {"hosts": [host], "prefix": "holdline"},
        }
    }
