"""``/healthz``, ``/readyz`` and ``/metrics``, served to machines beside Django.

The first two reveal next to nothing, and answer to any ``Host``, since a load balancer may know the
process by any name or address. ``/metrics`` answers only to the hosts that are served: a page in a
browser on this machine must not read the figures under a name of its own (DNS rebinding).
"""

import asyncio
import hmac
import json
import logging
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from email.utils import formatdate
from ipaddress import ip_address
from typing import Any, Final
from uuid import uuid4

from channels.layers import get_channel_layer
from django.db import DatabaseError
from prometheus_client import CONTENT_TYPE_LATEST, generate_latest

from config.edge.requests import Scope, Send, answer
from mcp_adapter.edge.guard import MISDIRECTED, is_host_served
from projects.conf import conf
from projects.errors.server import StorageUnavailable
from projects.link.consumer import unacknowledged_bytes
from projects.process import draining
from projects.process import metrics as metrics_of
from projects.storage.access import at_length, in_database
from projects.storage.probe import try_write
from projects.upkeep import gauges as census

LAYER_DEADLINE_SECONDS: Final = 2.0
DATABASE_DEADLINE_SECONDS: Final = 3.0
ANSWER_SECONDS: Final = 1.0
"""For this long, the last answer of the database is given again."""
CENSUS_SECONDS: Final = 5.0
"""Figures from the database are this old at most, however often somebody scrapes."""
# A request with one of these came through a proxy, which may pass on requests of anybody.
_FORWARDED: Final = frozenset(
    {
        b"forwarded",
        b"x-forwarded-for",
        b"x-forwarded-host",
        b"x-forwarded-proto",
        b"x-real-ip",
        b"via",
    }
)

logger = logging.getLogger(__name__)


@dataclass
class _Last:
    """The times of this process's last queries, and the query that runs."""

    counted_at: float = -CENSUS_SECONDS
    asked_at: float = -ANSWER_SECONDS
    asking: asyncio.Task[bool] | None = None


_last = _Last()


async def application(scope: Scope, send: Send) -> None:
    """Answer one GET or HEAD of a path in PROBES."""
    if scope["method"] not in {"GET", "HEAD"}:
        await _answer(send, 405, b"")
        return
    await PROBES[scope["path"]](scope, send)


async def healthz(_scope: Scope, send: Send) -> None:
    """Answer 200: the event loop runs. The date lets a host compare its clock with the server's."""
    # uvicorn adds a date to every answer by itself.
    date = ((b"date", formatdate(usegmt=True).encode()),) if conf.server == "daphne" else ()
    body = json.dumps({"status": "ok"}).encode()
    await answer(send, 200, body, (b"cache-control", b"no-store"), *date)


async def readyz(_scope: Scope, send: Send) -> None:
    """Answer 200 while the database takes writes and the process is not stopping, else 503.

    Without a channel layer, turns only take longer: ``degraded``, still 200.
    """
    if draining.has_begun():
        await _answer(send, 503, {"status": "draining"})
        return
    database, layer = await asyncio.gather(_is_database_up(), _is_layer_up())
    # Both are in every answer: a reader wants to know where to look next.
    parts = {"database": "up" if database else "down", "channel_layer": "up" if layer else "down"}
    if not database:
        await _answer(send, 503, {"status": "unavailable", **parts})
    else:
        await _answer(send, 200, {"status": "ok" if layer else "degraded", **parts})


async def metrics(scope: Scope, send: Send) -> None:
    """Answer in Prometheus' text format to a caller with HOLDLINE_METRICS_TOKEN.

    If no token is set, this machine itself may read them, unless LOCAL_METRICS is off.
    """
    headers: Mapping[bytes, bytes] = dict(scope["headers"])
    if not is_host_served(headers):
        await _answer(send, MISDIRECTED, {"error": "this Host is not served here"})
        return
    if not _may_see_metrics(scope, headers):
        # 404 and not 401, which would tell anybody that there is something to read.
        await _answer(send, 404, b"")
        return
    metrics_of.CONNECTED.set(draining.open_connections())
    metrics_of.OUTPUT_UNACKED.set(unacknowledged_bytes())
    metrics_of.TASKS.set(len(asyncio.all_tasks()))
    await _take_census()
    await _answer(send, 200, generate_latest(), CONTENT_TYPE_LATEST.encode())


PROBES: Final[Mapping[str, Callable[[Scope, Send], Awaitable[None]]]] = {
    "/healthz": healthz,
    "/readyz": readyz,
    "/metrics": metrics,
}


async def _is_database_up() -> bool:
    """True if the database takes a write.

    Anybody may call the probe and each query is a write, so at most one query is made in
    ANSWER_SECONDS; all callers share its answer.
    """
    is_old = time.monotonic() - _last.asked_at >= ANSWER_SECONDS
    if (
        _last.asking is None
        or _last.asking.get_loop() is not asyncio.get_running_loop()
        or (_last.asking.done() and is_old)
    ):
        _last.asking = asyncio.create_task(_ask_database(), name="readiness")
    return await asyncio.shield(_last.asking)


async def _ask_database() -> bool:
    try:
        async with asyncio.timeout(DATABASE_DEADLINE_SECONDS):
            await in_database(try_write)
    except (StorageUnavailable, TimeoutError):
        return False
    except DatabaseError:
        # An error that no call would survive either, such as a missing table.
        logger.exception("the database refuses a write")
        return False
    finally:
        _last.asked_at = time.monotonic()
    return True


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


def _may_see_metrics(scope: Scope, headers: Mapping[bytes, bytes]) -> bool:
    if conf.metrics_token:
        return hmac.compare_digest(
            headers.get(b"authorization", b""), f"Bearer {conf.metrics_token}".encode()
        )
    return (
        conf.local_metrics and not _FORWARDED & headers.keys() and _is_loopback(scope.get("client"))
    )


def _is_loopback(client: tuple[str, int] | None) -> bool:
    try:
        return client is not None and ip_address(client[0]).is_loopback
    except ValueError:
        return False


async def _take_census() -> None:
    """Count the rows that ``/metrics`` reports.

    Without the database they become NaN; the other figures are worth most just then.
    """
    if time.monotonic() - _last.counted_at < CENSUS_SECONDS:
        return
    _last.counted_at = time.monotonic()
    try:
        async with asyncio.timeout(DATABASE_DEADLINE_SECONDS):
            await at_length(census.take)
    except (StorageUnavailable, TimeoutError):
        census.forget()


async def _answer(
    send: Send,
    status: int,
    body: Mapping[str, Any] | bytes,
    content_type: bytes = b"application/json",
) -> None:
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    await answer(send, status, data, (b"cache-control", b"no-store"), content_type=content_type)
