"""Requests to ``/mcp`` as an ASGI application, without a socket, and their answers."""

import asyncio
import json
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from mcp_adapter.asgi import serve

META = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientInfo": {"name": "test", "version": "1"},
    "io.modelcontextprotocol/clientCapabilities": {},
}


class Answer:
    """The answer to one request: status, headers and body."""

    def __init__(self, messages: list[dict[str, Any]]) -> None:
        self.status = messages[0]["status"]
        self.raw_headers = messages[0]["headers"]
        self.headers = {name.decode().lower(): value.decode() for name, value in self.raw_headers}
        self.chunks = [message["body"] for message in messages[1:] if message.get("body")]
        self.body = b"".join(self.chunks)

    @property
    def json(self) -> Any:
        return json.loads(self.body)


async def request(
    body: Any = None,
    *,
    method: str = "POST",
    headers: Mapping[str, str] | None = None,
    gone: asyncio.Event | None = None,
    query: str = "",
    path: str = "/mcp",
    application: Callable[..., Awaitable[None]] = serve,
) -> Answer:
    """Send one request to the application, and return its answer.

    Bytes are sent as they are. Setting ``gone`` makes the client disconnect.
    """
    sent = {
        "host": "localhost:8000",
        "content-type": "application/json",
        "accept": "application/json, text/event-stream",
        **(headers or {}),
    }
    scope = {
        "type": "http",
        "http_version": "1.1",
        "method": method,
        "scheme": "http",
        "path": path,
        "raw_path": path.encode(),
        "query_string": query.encode(),
        "headers": [(name.encode(), value.encode()) for name, value in sent.items() if value],
        "client": ("127.0.0.1", 1),
        "server": ("127.0.0.1", 8000),
    }
    inbox = [
        {
            "type": "http.request",
            "body": body
            if isinstance(body, bytes)
            else b""
            if body is None
            else json.dumps(body).encode(),
            "more_body": False,
        }
    ]
    outbox: list[dict[str, Any]] = []
    never = gone or asyncio.Event()

    async def receive() -> dict[str, Any]:
        if inbox:
            return inbox.pop()
        await never.wait()
        return {"type": "http.disconnect"}

    async def send(message: dict[str, Any]) -> None:
        outbox.append(message)

    await application(scope, receive, send)
    return Answer(outbox) if outbox else Answer([{"status": 0, "headers": []}])


def modern(
    tool: str, arguments: dict[str, Any] | None = None
) -> tuple[dict[str, Any], dict[str, str]]:
    """Body and headers of a tool call in the protocol of 2026-07-28."""
    return message("tools/call", {"name": tool, "arguments": arguments or {}})


async def call(
    bearer: dict[str, str], tool: str, arguments: dict[str, Any] | None = None
) -> Answer:
    """Call a tool in the protocol of 2026-07-28, and return the answer."""
    body, headers = modern(tool, arguments)
    return await request(body, headers={**bearer, **headers})


async def result_of(
    bearer: dict[str, str], tool: str, arguments: dict[str, Any] | None = None
) -> dict[str, Any]:
    """Call a tool, and return the structured content of its result."""
    answer = await call(bearer, tool, arguments)
    content: dict[str, Any] = answer.json["result"]["structuredContent"]
    return content


def message(
    method: str, params: Mapping[str, Any] | None = None
) -> tuple[dict[str, Any], dict[str, str]]:
    """Body and headers of any request in the protocol of 2026-07-28."""
    headers = {"mcp-protocol-version": "2026-07-28", "mcp-method": method}
    if name := (params or {}).get("name", (params or {}).get("uri")):
        headers["mcp-name"] = name
    return {
        "jsonrpc": "2.0",
        "id": 1,
        "method": method,
        "params": {**(params or {}), "_meta": META},
    }, headers
