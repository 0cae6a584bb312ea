"""A call of a tool that needs nothing of the SDK's transport, read from its request.

A call is plain if it is understood in full, and asks for nothing but its result: no progress, no
batch, no input of an earlier round. The SDK's own functions judge it, so both ways refuse the same
requests. Every other request is the SDK's, with its body as it came.
"""

import json
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final

import pydantic_core
from mcp.server.streamable_http import check_accept_headers
from mcp.shared.inbound import InboundModernRoute, classify_inbound_request
from mcp_types import (
    CLIENT_CAPABILITIES_META_KEY,
    DEFAULT_NEGOTIATED_VERSION,
    PROTOCOL_VERSION_META_KEY,
    CallToolRequestParams,
    methods,
)
from mcp_types.version import HANDSHAKE_PROTOCOL_VERSIONS, MODERN_PROTOCOL_VERSIONS
from pydantic import ValidationError
from starlette.requests import Request

from projects.conf import conf
from projects.errors.calls import RequestNotUnderstood

Scope = dict[str, Any]
Message = dict[str, Any]
Receive = Callable[[], Awaitable[Any]]

METHOD: Final = "tools/call"
_JSON: Final = b"application/json"
_ENVELOPE: Final = frozenset({"jsonrpc", "id", "method", "params"})
_PARAMS: Final = frozenset({"name", "arguments", "_meta"})
_LARGEST_ID: Final = 2**53


@dataclass(frozen=True, slots=True)
class PlainCall:
    """One call; ``version`` is the revision of the protocol in which it is answered."""

    request_id: int | str
    name: str
    arguments: dict[str, Any] | None
    version: str
    meta: Mapping[str, Any]

    @property
    def is_modern(self) -> bool:
        """True if the request is complete in itself, without a handshake before it."""
        return self.version in MODERN_PROTOCOL_VERSIONS

    @property
    def shows_pages(self) -> bool:
        """True if the client says that it can open an address for its user."""
        if not self.is_modern:
            return False
        # The SDK has not looked at what the client says of itself.
        said = self.meta.get(CLIENT_CAPABILITIES_META_KEY)
        elicitation = said.get("elicitation") if isinstance(said, dict) else None
        return isinstance(elicitation, dict) and "url" in elicitation


async def read_plain(scope: Scope, receive: Receive) -> tuple[PlainCall | None, Receive]:
    """Reads the request, which is no plain call if None is returned.

    The ``receive`` that is returned gives what was read once more. Raises RequestNotUnderstood.
    """
    headers = dict(scope["headers"])
    version = _version(headers)
    if version is None or len(headers) != len(scope["headers"]) or not _is_json(headers):
        return None, receive
    messages: list[Message] = []
    body = await _body(receive, messages)
    call = None if body is None else _understood(body, version, headers)
    return call, _again(messages, receive)


def _version(headers: Mapping[bytes, bytes]) -> str | None:
    """The revision that the request names; None if it is not known."""
    shown = headers.get(b"mcp-protocol-version")
    if shown is None:
        return DEFAULT_NEGOTIATED_VERSION
    version = shown.decode("latin-1")
    known = version in HANDSHAKE_PROTOCOL_VERSIONS or version in MODERN_PROTOCOL_VERSIONS
    return version if known else None


def _is_json(headers: Mapping[bytes, bytes]) -> bool:
    """True if a body of JSON comes, and JSON or events may go back."""
    kind, size = headers.get(b"content-type", b""), headers.get(b"content-length", b"0")
    return (
        (kind == _JSON or kind.startswith(_JSON + b";"))
        and size.isdigit()
        and len(size) < 16
        and int(size) <= conf.data_upload_max_memory_size
        and _accepts_both(headers.get(b"accept", b""))
    )


@lru_cache(maxsize=64)
def _accepts_both(accept: bytes) -> bool:
    return check_accept_headers(Request({"type": "http", "headers": [(b"accept", accept)]})) == (
        True,
        True,
    )


async def _body(receive: Receive, messages: list[Message]) -> bytes | None:
    """The whole body; None if it is too large, or its sender went away.

    What is read goes into ``messages`` as well.
    """
    body = b""
    while True:
        message: Message = await receive()
        messages.append(message)
        if message["type"] != "http.request":
            return None
        part: bytes = message.get("body", b"")
        body += part
        if len(body) > conf.data_upload_max_memory_size:
            return None
        if not message.get("more_body", False):
            return body


def _again(messages: list[Message], receive: Receive) -> Receive:
    async def receive_again() -> Message:
        return messages.pop(0) if messages else await receive()

    return receive_again


def _understood(body: bytes, version: str, headers: Mapping[bytes, bytes]) -> PlainCall | None:
    is_modern = version in MODERN_PROTOCOL_VERSIONS
    try:
        # Each era has its own parser in the SDK.
        decoded = json.loads(body) if is_modern else pydantic_core.from_json(body)
    except (ValueError, RecursionError):
        return None
    _require_id(decoded)
    if not _has_form(decoded) or (is_modern and not _is_in_envelope(decoded, headers)):
        return None
    params = decoded["params"]
    try:
        methods.validate_client_request(METHOD, version, params)
        typed = CallToolRequestParams.model_validate(params, by_name=False)
    except ValidationError:
        return None
    meta = params.get("_meta", {})
    return PlainCall(decoded["id"], typed.name, typed.arguments, version, meta)


def _has_form(decoded: Any) -> bool:
    return (
        isinstance(decoded, dict)
        and decoded.keys() == _ENVELOPE
        and decoded["jsonrpc"] == "2.0"
        and decoded["method"] == METHOD
        and _is_id(decoded["id"])
        and isinstance(decoded["params"], dict)
        and decoded["params"].keys() <= _PARAMS
        and _asks_for_nothing(decoded["params"].get("_meta", {}))
    )


def _require_id(decoded: Any) -> None:
    """Raises RequestNotUnderstood for a request whose id the SDK would overlook.

    It would take the request for a notification, and its sender would wait for an answer for ever.
    """
    if (
        isinstance(decoded, dict)
        and {"id", "method"} <= decoded.keys()
        and type(decoded["id"]) not in {int, str}
    ):
        raise RequestNotUnderstood("the id of a request is a text or a whole number")


def _is_id(value: object) -> bool:
    return type(value) is str or (type(value) is int and abs(value) < _LARGEST_ID)


def _asks_for_nothing(meta: object) -> bool:
    """False if progress is wanted, or the SDK has to say what is wrong with ``_meta``."""
    return isinstance(meta, dict) and "progressToken" not in meta


def _is_in_envelope(decoded: Mapping[str, Any], headers: Mapping[bytes, bytes]) -> bool:
    if PROTOCOL_VERSION_META_KEY not in decoded["params"].get("_meta", {}):
        return False
    shown = {name.decode("latin-1"): value.decode("latin-1") for name, value in headers.items()}
    return isinstance(classify_inbound_request(decoded, headers=shown), InboundModernRoute)
