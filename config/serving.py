"""The ASGI application: Django's pages, ``/mcp``, the probes and the two WebSockets.

``/mcp`` and the probes are served beside Django, whose middleware costs a millisecond per request.
"""

import gc
import re
import sys
from uuid import uuid4

from django.core.asgi import get_asgi_application
from structlog.contextvars import bound_contextvars

from agent import worker as agent_worker
from config import graceful_stop, probes, recordings
from config.edge.requests import Receive, Scope, Send, guarded
from console.live.consumer import CONSOLE_PATH, ConsoleConsumer
from mcp_adapter.asgi import application as mcp_application
from mcp_adapter.edge.resource_metadata import MCP_PATH, METADATA_PATHS
from projects.attention import worker as attention_worker
from projects.link.routing import controller_socket
from projects.process import ready_threads, watchdog
from projects.upkeep import checkpoints, sweeper
from projects.wakeups import reconciler

django_application = get_asgi_application()
_BESIDE_DJANGO = METADATA_PATHS | {MCP_PATH}
_console_socket = ConsoleConsumer.as_asgi()
_REQUEST_ID = re.compile(rb"[A-Za-z0-9._-]{1,64}")

# Modules and classes live as long as the process. Without freeze, each full garbage collection
# would walk them again, which took up to two fifths of the server's time. What imports leave behind
# is frozen with them: it is little, and to look for it took a twelfth of the start.
gc.freeze()


async def _served(scope: Scope, receive: Receive, send: Send) -> None:
    if scope["type"] == "http":
        await _http(scope, receive, send)
    elif scope["path"] == CONSOLE_PATH:
        await _console_socket(scope, receive, send)
    else:
        await controller_socket(scope, receive, send)


def _bound_server() -> bool:
    """Install the bounds of ``config.edge`` in the ASGI server, before its first connection.

    True if the server then refuses large bodies itself.
    """
    if "daphne.server" in sys.modules:
        from config.edge import daphne_server

        daphne_server.install()
        return True
    if "uvicorn" in sys.modules:
        from config.edge import uvicorn_server

        uvicorn_server.install()
    return False


is_body_bounded = _bound_server()
"""The server refuses large bodies itself."""
_guarded = guarded(_served, is_body_bounded=is_body_bounded)


async def application(scope: Scope, receive: Receive, send: Send) -> None:
    """Serve one connection, and start the background tasks with the first one.

    ``lifespan`` is refused: Daphne does not run it, so nothing may depend on it.
    """
    if scope["type"] not in {"http", "websocket"}:
        raise ValueError(f"unsupported ASGI scope {scope['type']!r}")
    _ensure_running()
    await _guarded(scope, receive, send)


async def _http(scope: Scope, receive: Receive, send: Send) -> None:
    if scope["path"] in probes.PROBES:
        await probes.application(scope, send)
        return
    with graceful_stop.in_call(), bound_contextvars(request_id=_request_id(scope)):
        if scope["path"].removesuffix("/") in _BESIDE_DJANGO:
            await mcp_application(scope, receive, send)
        else:
            async with ready_threads.page_thread():
                if scope["path"].startswith(recordings.PATH):
                    await recordings.in_a_place(django_application, scope, receive, send)
                else:
                    await django_application(scope, receive, send)


def _request_id(scope: Scope) -> str:
    # The proxy's id, if it sent one, so that both logs name a request in the same way.
    for name, value in scope["headers"]:
        if name == b"x-request-id" and _REQUEST_ID.fullmatch(value):
            return str(value.decode())
    return uuid4().hex


def _ensure_running() -> None:
    if graceful_stop.ensure_installed():
        watchdog.ensure_watching()
        ready_threads.ensure_begun()
    reconciler.ROUNDS.ensure_running()
    sweeper.ROUNDS.ensure_running()
    checkpoints.ensure_running()
    attention_worker.ROUNDS.ensure_running()
    agent_worker.ensure_running()
