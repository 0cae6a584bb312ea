"""``/healthz``, ``/readyz`` and ``/metrics``: asked by machines, under whatever name they know the host by, and so beside Django."""

import asyncio
import hmac
import json
import time
from collections.abc import Awaitable, Callable, Mapping
from ipaddress import ip_address
from typing import Any, Final
from uuid import uuid4

from channels.layers import get_channel_layer
from django.db import connection
from prometheus_client import CONTENT_TYPE_LATEST, generate_latest

from projects import census, draining
from projects import metrics as metrics_of
from projects.conf import conf
from projects.consumers import unacknowledged_bytes
from projects.database import at_length, in_database
from projects.errors import StorageUnavailable

Scope = dict[str, Any]
Send = Callable[[Any], Awaitable[None]]

LAYER_DEADLINE_SECONDS: Final = 2.0
DATABASE_DEADLINE_SECONDS: Final = 3.0
CENSUS_SECONDS: Final = 5.0
"""How old the figures from the database may be: scraping more often costs it nothing."""
# A proxy on the same machine passes requests of anybody on.
_FORWARDED: Final = frozenset({b"forwarded", b"x-forwarded-for", b"x-forwarded-host", b"x-forwarded-proto", b"x-real-ip", b"via"})

_counted_at = -CENSUS_SECONDS


async def application(scope: Scope, send: Send) -> None:
    """Answers one GET of PROBES."""
    if scope["method"] not in {"GET", "HEAD"}:
        await _answer(send, 405, b"")
        return
    await PROBES[scope["path"]](scope, send)


async def healthz(_scope: Scope, send: Send) -> None:
    """The event loop turns."""
    await _answer(send, 200, {"status": "ok"})


async def readyz(_scope: Scope, send: Send) -> None:
    """200 while the database answers and nobody stops the process. A lost channel layer only costs latency: ``degraded``, still 200."""
    if draining.has_begun():
        await _answer(send, 503, {"status": "draining"})
        return
    database, layer = await asyncio.gather(_is_database_up(), _is_layer_up())
    # Both in every answer: whoever looks at it wants to know where to look next.
    parts = {"database": "up" if database else "down", "channel_layer": "up" if layer else "down"}
    if not database:
        await _answer(send, 503, {"status": "unavailable", **parts})
    else:
        await _answer(send, 200, {"status": "ok" if layer else "degraded", **parts})


async def metrics(scope: Scope, send: Send) -> None:
    """Prometheus' text format, for whoever shows HOLDLINE_METRICS_TOKEN; if there is none, for the machine itself, where settings allow."""
    if not _may_see_metrics(scope):
        # Not 401: to everybody else there is nothing here.
        await _answer(send, 404, b"")
        return
    metrics_of.CONNECTED.set(draining.open_connections())
    metrics_of.OUTPUT_UNACKED.set(unacknowledged_bytes())
    metrics_of.TASKS.set(len(asyncio.all_tasks()))
    await _take_census()
    await _answer(send, 200, generate_latest(), CONTENT_TYPE_LATEST.encode())


PROBES: Final[Mapping[str, Callable[[Scope, Send], Awaitable[None]]]] = {"/healthz": healthz, "/readyz": readyz, "/metrics": metrics}


async def _is_database_up() -> bool:
    try:
        async with asyncio.timeout(DATABASE_DEADLINE_SECONDS):
            await in_database(_ask_database)
    except (StorageUnavailable, TimeoutError):
        return False
    return True


def _ask_database() -> None:
    with connection.cursor() as cursor:
        cursor.execute("SELECT 1")


async def _is_layer_up() -> bool:
    layer = get_channel_layer()
    if layer is None:
        return True
    try:
        async with asyncio.timeout(LAYER_DEADLINE_SECONDS):
            await layer.group_send(f"readyz.{uuid4().hex}", {"type": "doorbell"})
    except Exception:  # noqa: BLE001 - whatever the layer raises, the answer is the same
        return False
    return True


def _may_see_metrics(scope: Scope) -> bool:
    headers: Mapping[bytes, bytes] = dict(scope["headers"])
    if conf.metrics_token:
        return hmac.compare_digest(headers.get(b"authorization", b""), f"Bearer {conf.metrics_token}".encode())
    return conf.local_metrics and not _FORWARDED & headers.keys() and _is_loopback(scope.get("client"))


def _is_loopback(client: tuple[str, int] | None) -> bool:
    try:
        return client is not None and ip_address(client[0]).is_loopback
    except ValueError:
        return False


async def _take_census() -> None:
    """Figures that are rows. With the database away the last ones stay: everything else is worth seeing just then."""
    global _counted_at  # noqa: PLW0603 - of the process, like the metrics
    if time.monotonic() - _counted_at < CENSUS_SECONDS:
        return
    _counted_at = time.monotonic()
    try:
        async with asyncio.timeout(DATABASE_DEADLINE_SECONDS):
            await at_length(census.take)
    except (StorageUnavailable, TimeoutError):
        census.forget()


async def _answer(send: Send, status: int, body: Mapping[str, Any] | bytes, content_type: bytes = b"application/json") -> None:
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    headers = [(b"content-type", content_type), (b"content-length", str(len(data)).encode()), (b"cache-control", b"no-store")]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": data})
