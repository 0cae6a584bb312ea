"""Everything that is served: Django, ``/mcp`` beside it (its view stack costs a millisecond), and the controllers' socket."""

import gc
import os
from collections.abc import Awaitable, Callable
from typing import Any

from django.core.asgi import get_asgi_application

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings.base")
# Loads the apps: everything below may import models.
django_application = get_asgi_application()

from mcp_adapter.asgi import application as mcp_application  # noqa: E402
from mcp_adapter.resource_metadata import MCP_PATH, METADATA_PATHS  # noqa: E402
from projects import checkpoints, sweeper  # noqa: E402
from projects.routing import controller_socket  # noqa: E402

Scope = dict[str, Any]
Receive = Callable[[], Awaitable[Any]]
Send = Callable[[Any], Awaitable[None]]

_BESIDE_DJANGO = METADATA_PATHS | {MCP_PATH}

# What is loaded by now stays: walking it again in every full collection would take up to two fifths of the server's time.
gc.collect()
gc.freeze()


async def application(scope: Scope, receive: Receive, send: Send) -> None:
    """The ASGI application. ``lifespan`` is refused, as Daphne never runs it: what runs beside the connections starts with the first."""
    if scope["type"] == "http":
        _ensure_running()
        mounted = mcp_application if scope["path"].rstrip("/") in _BESIDE_DJANGO else django_application
        await mounted(scope, receive, send)
    elif scope["type"] == "websocket":
        _ensure_running()
        await controller_socket(scope, receive, send)
    else:
        raise ValueError(f"unsupported ASGI scope {scope['type']!r}")


def _ensure_running() -> None:
    sweeper.ensure_running()
    checkpoints.ensure_running()
