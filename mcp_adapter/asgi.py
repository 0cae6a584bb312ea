"""``/mcp`` as an ASGI application: streamable HTTP, stateless, for both eras of the protocol.

Each request is complete in itself, so any worker can serve it. A plain call of a tool is answered
here (``plain_call``, ``direct_call``). Every other request is handed to a session manager of the
SDK, one for each (Daphne runs no ASGI lifespan in which a shared one could live). A client that
goes away cancels its call; the program it called about is not touched.
"""

import json
import logging
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from typing import Any, Final
from urllib.parse import parse_qs

from mcp.server.lowlevel import Server
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from mcp.server.transport_security import TransportSecuritySettings

from controller_client.protocol.sentences import sentences
from mcp_adapter.callers import CALLER, TOOLSETS_ASKED
from mcp_adapter.direct_call import answer, result_of
from mcp_adapter.edge import cross_origin
from mcp_adapter.edge.guard import refusal_status
from mcp_adapter.edge.resource_metadata import METADATA_PATHS, challenge, protected_resource
from mcp_adapter.edge.sdk_refusals import explained
from mcp_adapter.event_stream import OPEN
from mcp_adapter.plain_call import PlainCall, read_plain
from mcp_adapter.server import build_server
from projects.accounts.call_places import place
from projects.accounts.client_address import peer_of
from projects.accounts.token_check import TokenCheck
from projects.accounts.tokens import shown_token
from projects.conf import conf
from projects.errors.access import Unauthenticated
from projects.errors.base import ControllerActionError
from projects.errors.calls import UnknownTool, UnknownToolset
from projects.errors.server import ServerStopping, StorageUnavailable
from projects.process import draining
from projects.storage.access import NotLetThrough
from projects.tools.toolsets import check_toolsets, names_for

Scope = dict[str, Any]
Message = dict[str, Any]
Receive = Callable[[], Awaitable[Any]]
Send = Callable[[Any], Awaitable[None]]

logger = logging.getLogger(__name__)

# ``guard`` has checked Host and Origin, by the settings that Django uses too.
_SECURITY: Final = TransportSecuritySettings(enable_dns_rebinding_protection=False)

# Of JSON-RPC: an error of the server's own kind.
_SERVER_ERROR: Final = -32000

# It says at every request that a session manager started and stopped.
logging.getLogger("mcp.server.streamable_http_manager").setLevel(logging.WARNING)
logging.getLogger("mcp.server.streamable_http").setLevel(logging.WARNING)


async def serve(
    scope: Scope,
    receive: Receive,
    send: Send,
    *,
    make_server: Callable[[frozenset[str]], Server[Any]] | None = None,
) -> None:
    """Serves one request, from the first check to the last byte.

    ``make_server`` gives another server than ours for the names of the caller's tools. The SDK
    answers all of its requests.
    """
    headers: Mapping[bytes, bytes] = dict(scope["headers"])
    if (status := refusal_status(headers)) is not None:
        await _answer(send, status, _as_protocol_error("this Host or Origin is not served here"))
        return
    if cross_origin.is_page(headers):
        send = cross_origin.readable(send, headers)
        if scope["method"] == "OPTIONS":
            await cross_origin.answer_preflight(send, headers)
            return
    if scope["path"].removesuffix("/") in METADATA_PATHS:
        await _answer_metadata(scope, send)
        return
    if scope["method"] != "POST":
        # At once: clients ask with GET for a stream that a stateless server does not have, and some
        # wait for the answer.
        await _answer(
            send, 405, _as_protocol_error("only POST is served here"), (b"allow", b"POST")
        )
        return
    authorization = _text(headers.get(b"authorization"))
    try:
        token = shown_token(authorization)
        async with place(token):
            if draining.has_begun():
                # Before anything is done about it: a proxy may give the call to another process.
                raise ServerStopping
            check = TokenCheck(token, peer_of(scope))
            await _serve_caller(make_server, scope, check, receive, send)
    except ControllerActionError as error:
        # Nothing of an answer was sent: whatever is raised behind the session manager is its to
        # answer.
        body = error.body()
        await _answer(
            send,
            error.status,
            _as_protocol_error(sentences(body["error"], body["hint"]), **body),
            *_headers_for(error, scope, is_token_shown=authorization is not None),
        )


async def _serve_caller(
    make_server: Callable[[frozenset[str]], Server[Any]] | None,
    scope: Scope,
    check: TokenCheck,
    receive: Receive,
    send: Send,
) -> None:
    toolsets = _toolsets(scope)
    if make_server is None:
        # The body of a stranger is not read.
        presumed = await check.presumed()
        call, again = await read_plain(scope, receive)
        if call is not None and presumed.is_held and call.shows_pages:
            # The SDK reads what the client can show, and sends what is to be shown.
            call = None
        if call is not None and await _is_answered(call, check, toolsets, receive, send):
            return
        receive = again
    caller = await check.caller()
    # Only after it is known who asks.
    check_toolsets(toolsets)
    manager = StreamableHTTPSessionManager(
        app=(make_server or build_server)(names_for(caller, toolsets)),
        stateless=True,
        json_response=False,
        security_settings=_SECURITY,
        max_request_body_size=conf.data_upload_max_memory_size,
    )
    async with manager.run():
        await manager.handle_request(
            {**scope, CALLER: caller, TOOLSETS_ASKED: toolsets},
            receive,
            _opened_early(explained(send)),
        )


async def _is_answered(
    call: PlainCall, check: TokenCheck, toolsets: tuple[str, ...], receive: Receive, send: Send
) -> bool:
    """Answers a plain call; returns False if nothing was done.

    The caller may not be who the token named before, or the SDK has to say what is wrong.
    """

    async def act() -> dict[str, Any]:
        return await check.during(lambda caller: result_of(call, caller, toolsets))

    async def may_open() -> bool:
        with suppress(StorageUnavailable):
            return await check.has_passed()
        return False

    try:
        await answer(call, receive, send, act=act, may_open=may_open)
    except (NotLetThrough, UnknownTool, UnknownToolset):
        return False
    return True


application: Final = serve
"""The ASGI application mounted at ``/mcp``."""


def _headers_for(
    error: ControllerActionError, scope: Scope, *, is_token_shown: bool
) -> tuple[tuple[bytes, bytes], ...]:
    if isinstance(error, Unauthenticated):
        return (challenge(scope, "invalid_token" if is_token_shown else ""),)
    seconds = error.body().get("retry_after_seconds", 1)
    return ((b"retry-after", str(seconds).encode()),) if error.retryable else ()


def _as_protocol_error(message: str, **data: Any) -> dict[str, Any]:
    """A refusal as clients of MCP read it: they show ``message``.

    ``data`` is the body of an error, where there is one.
    """
    error = {"code": _SERVER_ERROR, "message": message}
    return {"jsonrpc": "2.0", "id": None, "error": {**error, "data": data} if data else error}


async def _answer_metadata(scope: Scope, send: Send) -> None:
    if scope["method"] != "GET":
        await _answer(send, 405, _as_protocol_error("only GET is served here"), (b"allow", b"GET"))
        return
    await _answer(send, 200, protected_resource(scope))


def _opened_early(send: Send) -> Send:
    """``send`` that begins an event stream of the SDK with the comment of ours."""

    async def early(message: Message) -> None:
        await send(message)
        if message["type"] == "http.response.start" and _is_event_stream(message):
            await send({"type": "http.response.body", "body": OPEN, "more_body": True})

    return early


def _is_event_stream(message: Message) -> bool:
    return any(
        name.lower() == b"content-type" and value.startswith(b"text/event-stream")
        for name, value in message.get("headers", ())
    )


async def _answer(
    send: Send, status: int, body: Mapping[str, Any], *headers: tuple[bytes, bytes]
) -> None:
    data = json.dumps(body).encode()
    start = {
        "type": "http.response.start",
        "status": status,
        "headers": [(b"content-type", b"application/json"), *headers],
    }
    await send(start)
    await send({"type": "http.response.body", "body": data})


def _toolsets(scope: Scope) -> tuple[str, ...]:
    """The sets that ``?toolsets=interactive,jobs`` names; empty for all tools."""
    query = parse_qs(scope["query_string"].decode("latin-1")) if scope.get("query_string") else {}
    return tuple(
        name.strip()
        for value in query.get("toolsets", ())
        for name in value.split(",")
        if name.strip()
    )


def _text(header: bytes | None) -> str | None:
    return None if header is None else header.decode("latin-1")
