"""A caller that costs little: one connection, one call at a time, no model of what comes back. For loads that the official client would be
most of."""

import asyncio
import json
from typing import Any

_REVISION = "2026-07-28"
_META = {
    "io.modelcontextprotocol/protocolVersion": _REVISION,
    "io.modelcontextprotocol/clientInfo": {"name": "load", "version": "1"},
    "io.modelcontextprotocol/clientCapabilities": {},
}


class LightCaller:
    """``call`` returns the structured result; any other answer is an error."""

    def __init__(self, host: str, port: int, token: str) -> None:
        self._host, self._port, self._token = host, port, token
        self._streams: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None

    async def call(self, tool: str, **arguments: Any) -> dict[str, Any]:
        """One call of a tool."""
        if self._streams is None:
            self._streams = await asyncio.open_connection(self._host, self._port, limit=1 << 20)
        reader, writer = self._streams
        try:
            writer.write(self._request(tool, arguments))
            status, body = await _response(reader)
        except (OSError, asyncio.IncompleteReadError):
            self.close()
            raise
        text = body.partition(b"data: ")[2].partition(b"\r\n")[0] or body
        answer = json.loads(text)
        if status != 200 or answer.get("result", {}).get("isError", True):
            raise RuntimeError(f"{status} {text[:300]!r}")
        return dict(answer["result"]["structuredContent"])

    def _request(self, tool: str, arguments: dict[str, Any]) -> bytes:
        params = {"name": tool, "arguments": arguments, "_meta": _META}
        body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}).encode()
        lines = {
            "Host": f"{self._host}:{self._port}",
            "Authorization": f"Bearer {self._token}",
            "Content-Type": "application/json",
            "Accept": "application/json, text/event-stream",
            "Content-Length": str(len(body)),
            "MCP-Protocol-Version": _REVISION,
            "MCP-Method": "tools/call",
            "MCP-Name": tool,
        }
        head = "".join(f"{name}: {value}\r\n" for name, value in lines.items())
        return f"POST /mcp HTTP/1.1\r\n{head}\r\n".encode() + body

    def close(self) -> None:
        """The next call opens another connection."""
        if self._streams is not None:
            self._streams[1].close()
            self._streams = None


async def _response(reader: asyncio.StreamReader) -> tuple[int, bytes]:
    head = (await reader.readuntil(b"\r\n\r\n")).lower()
    status = int(head.split(b" ", 2)[1])
    if b"transfer-encoding: chunked" in head:
        parts = []
        while size := int(await reader.readline(), 16):
            parts.append((await reader.readexactly(size + 2))[:-2])
        await reader.readexactly(2)
        return status, b"".join(parts)
    length = int(head.partition(b"content-length:")[2].split(b"\r\n", 1)[0])
    return status, await reader.readexactly(length)
