"""Whether the process is alive, and whether it can do its work."""

import asyncio
from uuid import uuid4

from channels.layers import get_channel_layer
from django.db import connection
from django.http import HttpRequest, JsonResponse

from projects.database import in_database
from projects.errors import StorageUnavailable

LAYER_DEADLINE_SECONDS = 2.0


async def healthz(_request: HttpRequest) -> JsonResponse:
    """The event loop turns."""
    return JsonResponse({"status": "ok"})


async def readyz(_request: HttpRequest) -> JsonResponse:
    """200 while the database answers. A lost channel layer only costs latency: ``degraded``, still 200."""
    try:
        await in_database(_ask_database)
    except StorageUnavailable:
        return JsonResponse({"status": "unavailable", "database": "down"}, status=503)
    layer = "up" if await _is_layer_up() else "down"
    return JsonResponse({"status": "ok" if layer == "up" else "degraded", "database": "up", "channel_layer": layer})


def _ask_database() -> None:
    with connection.cursor() as cursor:
        cursor.execute("SELECT 1")


async def _is_layer_up() -> bool:
    try:
        async with asyncio.timeout(LAYER_DEADLINE_SECONDS):
            await get_channel_layer().group_send(f"readyz.{uuid4().hex}", {"type": "doorbell"})
    except Exception:  # noqa: BLE001 - whatever the layer raises, the answer is the same
        return False
    return True
