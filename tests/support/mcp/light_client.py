"""A caller that costs little: one connection, one call at a time, no models of the answers.

It is meant for loads of which the official client would be the larger part.
"""

import asyncio
import json
from typing import Any

_REVISION = "2026-07-28"
META = {
    "io.modelcontextprotocol/protocolVersion": _REVISION,
    "io.modelcontextprotocol/clientInfo": {"name": "load", "version": "1"},
    "io.modelcontextprotocol/clientCapabilities": {},
}


class NotAnsweredError(Exception):
    """The connection could not be made, or it ended before the answer did."""


class LightCaller:
    """Calls tools over plain HTTP.

    Unless ``is_kept``, each call has a connection of its own, so a proxy may send each to another
    server.
    """

    def __init__(self, host: str, port: int, token: str, *, is_kept: bool = True) -> None:
        self._host, self._port, self._token, self._is_kept = host, port, token, is_kept
        self._streams: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None

    async def call(self, tool: str, **arguments: Any) -> dict[str, Any]:
        """Call a tool and return its structured result. Raises RuntimeError for a refusal."""
        status, answer = await self.ask(tool, **arguments)
        if status != 200 or answer.get("result", {}).get("isError", True):
            raise RuntimeError(f"{status} {str(answer)[:300]}")
        return dict(answer["result"]["structuredContent"])

    async def ask(self, tool: str, **arguments: Any) -> tuple[int, dict[str, Any]]:
        """Call a tool and return the HTTP status and the message, whatever they are.

        Raises NotAnsweredError. The next call then has another connection.
        """
        try:
            if self._streams is None:
                self._streams = await asyncio.open_connection(self._host, self._port, limit=1 << 20)
            reader, writer = self._streams
            writer.write(self._request(tool, arguments))
            status, body = await _response(reader)
        except (OSError, EOFError, asyncio.LimitOverrunError) as error:
            self.close()
            raise NotAnsweredError(repr(error)) from error
        except BaseException:
            # The call was cancelled before its answer came. The answer may still come, and must
            # not be taken for that of the next call.
            self.close()
            raise
        if not self._is_kept:
            self.close()
        return status, _message(body)

    def _request(self, tool: str, arguments: dict[str, Any]) -> bytes:
        params = {"name": tool, "arguments": arguments, "_meta": META}
        body = json.dumps(
            {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
        ).encode()
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
        """Close the connection. The next call opens another one."""
        if self._streams is not None:
            self._streams[1].close()
            self._streams = None


async def _response(reader: asyncio.StreamReader) -> tuple[int, bytes]:
    head = (await reader.readuntil(b"\r\n\r\n")).lower()
    status = int(head.split(b" ", 2)[1])
    if b"transfer-encoding: chunked" in head:
        parts = []
        # readuntil raises IncompleteReadError if the stream ends between two chunks.
        while size := int(await reader.readuntil(b"\n"), 16):
            parts.append((await reader.readexactly(size + 2))[:-2])
        await reader.readexactly(2)
        return status, b"".join(parts)
    length = int(head.partition(b"content-length:")[2].split(b"\r\n", 1)[0])
    return status, await reader.readexactly(length)


def _message(body: bytes) -> dict[str, Any]:
    """The message in a body: all of the body, or the last event of a stream.

    Raises NotAnsweredError for a stream without an answer.
    """
    if not body:
        return {}
    events = [
        line.removeprefix(b"data: ") for line in body.splitlines() if line.startswith(b"data: ")
    ]
    message = json.loads(events[-1] if events else body)
    if events and "result" not in message and "error" not in message:
        raise NotAnsweredError("the stream was cut off")
    return dict(message)
