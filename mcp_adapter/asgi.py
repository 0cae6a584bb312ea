"""``/mcp`` as an ASGI application: streamable HTTP, stateless, for both eras of the protocol.

Each request is complete in itself, so any worker can serve it: checked, authenticated against the database, handed to a session
manager of its own (Daphne runs no ASGI lifespan in which a shared one could live). A client that goes away cancels its call; the
program it called about is not touched.
"""

import json
import logging
from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from typing import Any, Final
from urllib.parse import parse_qs

from mcp.server.lowlevel import Server
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from mcp.server.transport_security import TransportSecuritySettings

from mcp_adapter import cross_origin
from mcp_adapter.callers import CALLER, TOOLSETS_ASKED
from mcp_adapter.guard import refusal_status
from mcp_adapter.resource_metadata import METADATA_PATHS, challenge, protected_resource
from mcp_adapter.server import build_server
from projects import draining
from projects.authentication import authenticate_api_token
from projects.errors import ControllerActionError, ServerStopping, Unauthenticated
from projects.peers import peer_of
from projects.tools.toolsets import check_toolsets

Scope = dict[str, Any]
Message = dict[str, Any]
Receive = Callable[[], Awaitable[Any]]
Send = Callable[[Any], Awaitable[None]]

logger = logging.getLogger(__name__)

# The largest argument is an input of 64 KiB, which JSON may write six times as long.
MAX_BODY_BYTES: Final = 1024 * 1024
# ``guard`` has checked Host and Origin, by the settings that Django uses too.
_SECURITY: Final = TransportSecuritySettings(enable_dns_rebinding_protection=False)

_RETRY_SOON: Final = (b"retry-after", b"1")

# It says at every request that a session manager started and stopped.
logging.getLogger("mcp.server.streamable_http_manager").setLevel(logging.WARNING)
logging.getLogger("mcp.server.streamable_http").setLevel(logging.WARNING)


async def serve(server: Server[Any], scope: Scope, receive: Receive, send: Send) -> None:
    """One request to ``server``, from the first check to the last byte."""
    headers: Mapping[bytes, bytes] = dict(scope["headers"])
    if (status := refusal_status(headers)) is not None:
        await _answer(send, status, {"error": "this Host or Origin is not served here"})
        return
    if cross_origin.is_page(headers):
        send = cross_origin.readable(send, headers)
        if scope["method"] == "OPTIONS":
            await cross_origin.answer_preflight(send, headers)
            return
    if scope["path"].rstrip("/") in METADATA_PATHS:
        await _answer_metadata(scope, send)
        return
    if scope["method"] != "POST":
        # At once: clients ask with GET for a stream that a stateless server does not have, and some wait for the answer.
        await _answer(send, 405, {"error": "only POST is served here"}, (b"allow", b"POST"))
        return
    if draining.has_begun():
        # Before anything is done about it: a proxy may give the call to another process.
        await _answer(send, ServerStopping.status, dict(ServerStopping().body()), _RETRY_SOON)
        return
    toolsets, authorization = _toolsets(scope), headers.get(b"authorization")
    try:
        caller = await authenticate_api_token(_text(authorization), peer_of(scope))
        # Only after it is known who asks.
        check_toolsets(toolsets)
    except ControllerActionError as error:
        await _answer(send, error.status, dict(error.body()), *_headers_for(error, scope, is_token_shown=authorization is not None))
        return
    manager = StreamableHTTPSessionManager(
        app=server, stateless=True, json_response=False, security_settings=_SECURITY, max_request_body_size=MAX_BODY_BYTES
    )
    async with manager.run():
        await manager.handle_request({**scope, CALLER: caller, TOOLSETS_ASKED: toolsets}, receive, _opened_early(send))


application: Final = partial(serve, build_server())
"""The ASGI application mounted at ``/mcp``."""


def _headers_for(error: ControllerActionError, scope: Scope, *, is_token_shown: bool) -> tuple[tuple[bytes, bytes], ...]:
    if isinstance(error, Unauthenticated):
        return (challenge(scope, "invalid_token" if is_token_shown else ""),)
    return (_RETRY_SOON,) if error.retryable else ()


async def _answer_metadata(scope: Scope, send: Send) -> None:
    if scope["method"] != "GET":
        await _answer(send, 405, {"error": "only GET is served here"}, (b"allow", b"GET"))
        return
    await _answer(send, 200, protected_resource(scope))


def _opened_early(send: Send) -> Send:
    """Daphne holds headers back until the first byte of the body: an event stream begins with a comment, so that they leave."""

    async def early(message: Message) -> None:
        await send(message)
        if message["type"] == "http.response.start" and _is_event_stream(message):
            await send({"type": "http.response.body", "body": b": open\r\n\r\n", "more_body": True})

    return early


def _is_event_stream(message: Message) -> bool:
    return any(name.lower() == b"content-type" and value.startswith(b"text/event-stream") for name, value in message.get("headers", ()))


async def _answer(send: Send, status: int, body: Mapping[str, Any], *headers: tuple[bytes, bytes]) -> None:
    data = json.dumps(body).encode()
    start = {"type": "http.response.start", "status": status, "headers": [(b"content-type", b"application/json"), *headers]}
    await send(start)
    await send({"type": "http.response.body", "body": data})


def _toolsets(scope: Scope) -> tuple[str, ...]:
    """``?toolsets=interactive,jobs``; empty: everything."""
    query = parse_qs(scope["query_string"].decode("latin-1")) if scope.get("query_string") else {}
    return tuple(name.strip() for value in query.get("toolsets", ()) for name in value.split(",") if name.strip())


def _text(header: bytes | None) -> str | None:
    return None if header is None else header.decode("latin-1")
