"""Everything that is served: Django; beside it ``/mcp`` (its view stack costs a millisecond) and the probes; the controllers' socket."""

import gc
import re
from collections.abc import Awaitable, Callable
from typing import Any
from uuid import uuid4

from django.core.asgi import get_asgi_application
from structlog.contextvars import bound_contextvars

from agent import worker as agent_worker
from config import graceful_stop, probes, request_bodies
from mcp_adapter.asgi import application as mcp_application
from mcp_adapter.resource_metadata import MCP_PATH, METADATA_PATHS
from projects import checkpoints, safety_net, sweeper
from projects.routing import controller_socket

Scope = dict[str, Any]
Receive = Callable[[], Awaitable[Any]]
Send = Callable[[Any], Awaitable[None]]

django_application = get_asgi_application()
_BESIDE_DJANGO = METADATA_PATHS | {MCP_PATH}
_REQUEST_ID = re.compile(rb"[A-Za-z0-9._-]{1,64}")

# What is loaded by now stays: walking it again in every full collection would take up to two fifths of the server's time.
gc.collect()
gc.freeze()
request_bodies.leave_to_application()


async def application(scope: Scope, receive: Receive, send: Send) -> None:
    """The ASGI application. ``lifespan`` is refused, as Daphne never runs it: what runs beside the connections starts with the first."""
    if scope["type"] == "http":
        _ensure_running()
        await _http(scope, receive, send)
    elif scope["type"] == "websocket":
        _ensure_running()
        await controller_socket(scope, receive, send)
    else:
        raise ValueError(f"unsupported ASGI scope {scope['type']!r}")


async def _http(scope: Scope, receive: Receive, send: Send) -> None:
    if scope["path"] in probes.PROBES:
        await probes.application(scope, send)
        return
    mounted = mcp_application if scope["path"].rstrip("/") in _BESIDE_DJANGO else django_application
    with graceful_stop.in_call(), bound_contextvars(request_id=_request_id(scope)):
        await mounted(scope, receive, send)


def _request_id(scope: Scope) -> str:
    """The proxy's, so that its log and ours speak of the same request; otherwise our own."""
    for name, value in scope["headers"]:
        if name == b"x-request-id" and _REQUEST_ID.fullmatch(value):
            return str(value.decode())
    return uuid4().hex


def _ensure_running() -> None:
    graceful_stop.ensure_installed()
    safety_net.ROUNDS.ensure_running()
    sweeper.ROUNDS.ensure_running()
    checkpoints.ensure_running()
    agent_worker.ensure_running()
