"""One MCP tools/call as one HTTP exchange on a connection of its own, in either era of MCP."""

import asyncio
import json
from dataclasses import dataclass
from typing import Final, Literal

Json = dict[str, object]
Outcome = Literal["ok", "refused", "unknown"]

_MODERN: Final = "2026-07-28"
_META: Final = {
    "io.modelcontextprotocol/protocolVersion": _MODERN,
    "io.modelcontextprotocol/clientInfo": {"name": "chaos", "version": "1"},
    "io.modelcontextprotocol/clientCapabilities": {},
}
_MOST_BYTES: Final = 1 << 24
# What stands in the way of the server says so with these, and nobody knows what the server did.
_IN_THE_WAY: Final = {500, 502, 504}
AGAIN_UNDER_A_NEW_ID: Final = {"RULES_UNREADABLE"}
"""Refusals that pass by themselves, and stay on record for the ``request_id`` that met them."""
NOT_KNOWN: Final = "REQUEST_NOT_KNOWN"
"""The database was restored, and may have forgotten what this ``request_id`` did."""
SUSPENDED: Final = "UNAUTHENTICATED"
"""Every token is refused so from a restore until somebody has confirmed it."""


@dataclass(frozen=True)
class Reply:
    """The answer to a call: a result, a refusal with its body, or nothing to rely on."""

    outcome: Outcome
    body: Json

    @property
    def code(self) -> str:
        """The stable code of a refusal."""
        return str(self.body.get("code", ""))

    @property
    def is_worth_repeating(self) -> bool:
        """True if the same call, with the same ``request_id``, may still succeed."""
        return (
            self.outcome == "unknown" or bool(self.body.get("retryable")) or self.code == SUSPENDED
        )

    @property
    def wants_a_new_id(self) -> bool:
        """True if nothing was done, and the same call may succeed under a new ``request_id``."""
        return self.outcome == "refused" and self.code in AGAIN_UNDER_A_NEW_ID


@dataclass(frozen=True)
class Endpoint:
    """The address at which a caller reaches the server, and the token it shows."""

    port: int
    token: str

    async def call(
        self, tool: str, arguments: Json, seconds: float, *, is_modern: bool = True
    ) -> Reply:
        """Call a tool; an answer that does not come in ``seconds`` is unknown."""
        try:
            async with asyncio.timeout(seconds):
                status, data = await self._exchange(self._request(tool, arguments, is_modern))
            return _reply(status, data)
        except TimeoutError:
            return Reply("unknown", {"why": "no answer in time"})
        except (OSError, EOFError, ValueError, IndexError, asyncio.LimitOverrunError) as error:
            return Reply("unknown", {"why": type(error).__name__})

    def _request(self, tool: str, arguments: Json, is_modern: bool) -> bytes:
        params: Json = {"name": tool, "arguments": arguments}
        era = ""
        if is_modern:
            params["_meta"] = _META
            era = (
                f"MCP-Protocol-Version: {_MODERN}\r\nMCP-Method: tools/call\r\nMCP-Name: {tool}\r\n"
            )
        body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params})
        return (
            f"POST /mcp HTTP/1.1\r\nHost: 127.0.0.1:{self.port}\r\n"
            f"Authorization: Bearer {self.token}\r\nContent-Type: application/json\r\n"
            f"Accept: application/json, text/event-stream\r\n{era}Connection: close\r\n"
            f"Content-Length: {len(body.encode())}\r\n\r\n{body}"
        ).encode()

    async def _exchange(self, request: bytes) -> tuple[int, bytes]:
        reader, writer = await asyncio.open_connection("127.0.0.1", self.port, limit=_MOST_BYTES)
        try:
            writer.write(request)
            return await _response(reader)
        finally:
            writer.close()


async def _response(reader: asyncio.StreamReader) -> tuple[int, bytes]:
    head = (await reader.readuntil(b"\r\n\r\n")).lower()
    status = int(head.split(b" ", 2)[1])
    if b"transfer-encoding: chunked" not in head:
        length = int(head.partition(b"content-length:")[2].split(b"\r\n", 1)[0])
        return status, await reader.readexactly(length)
    parts = []
    while size := int(await reader.readuntil(b"\n"), 16):
        parts.append((await reader.readexactly(size + 2))[:-2])
    return status, b"".join(parts)


def _reply(status: int, data: bytes) -> Reply:
    events = [line[5:].strip() for line in data.splitlines() if line.startswith(b"data:")]
    message = json.loads(events[-1] if events else data or b"{}")
    result = message.get("result")
    if isinstance(result, dict):
        if result.get("isError"):
            return Reply("refused", json.loads(result["content"][0]["text"]))
        return Reply("ok", result["structuredContent"])
    error = message.get("error")
    body = error.get("data") if isinstance(error, dict) else message
    if not isinstance(body, dict) or "code" not in body:
        body = {"code": f"HTTP_{status}", "error": str(message)[:300]}
    if status in _IN_THE_WAY:
        return Reply("unknown", {"why": f"HTTP {status}"})
    return Reply("refused", body)
