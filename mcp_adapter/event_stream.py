"""The answer to one plain call, with the bytes of the SDK and without its tasks and streams.

A call of the older era is answered by a stream of events, which opens with a comment. A call of the
newer era is answered by one body, or by a stream if the call takes long. Comments keep a stream
alive.
"""

import asyncio
import json
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from typing import Any, Final

from mcp_types import JSONRPCResponse

from mcp_adapter.plain_call import PlainCall

Send = Callable[[Any], Awaitable[None]]
Headers = list[tuple[bytes, bytes]]

OPEN: Final = b": open\r\n\r\n"
"""A comment that begins every stream. Daphne holds headers back until the first byte of the body;
the comment lets them leave."""
QUIET_SECONDS: Final = 1.0
"""A stream of the older era opens after this. Most calls are over by then, and are one write: also
when the server is full, which is no time to write twice."""
PING_SECONDS: Final = 15.0
"""A stream says that it is alive in these intervals. An answer of the newer era becomes a stream
after the first of them."""

_HANDSHAKE_STREAM: Final[Headers] = [
    (b"cache-control", b"no-cache, no-transform"),
    (b"connection", b"keep-alive"),
    (b"content-type", b"text/event-stream"),
    (b"x-accel-buffering", b"no"),
]
_MODERN_STREAM: Final[Headers] = [
    (b"content-type", b"text/event-stream"),
    (b"cache-control", b"no-cache, no-transform"),
    (b"connection", b"keep-alive"),
    (b"x-accel-buffering", b"no"),
]


class Answer:
    """The answer to ``call``, begun early if the call takes long.

    Nothing is sent before ``may_open`` returns True, or the result is there.
    """

    def __init__(
        self, call: PlainCall, send: Send, may_open: Callable[[], Awaitable[bool]]
    ) -> None:
        self._call, self._send, self._may_open = call, send, may_open
        self._is_open = False
        self._sending: asyncio.Task[None] | None = None
        self._wait()

    async def end(self, result: dict[str, Any]) -> None:
        """Sends the result, and ends the answer with it."""
        self._timer.cancel()
        if self._sending is not None:
            await self._sending
            self._timer.cancel()
        response = JSONRPCResponse(jsonrpc="2.0", id=self._call.request_id, result=result)
        if self._is_open:
            await self._body(self._event(response), is_last=True)
        elif self._call.is_modern:
            body = _as_text(response).encode()
            await self._start(
                [
                    (b"content-length", str(len(body)).encode()),
                    (b"content-type", b"application/json"),
                ]
            )
            await self._body(body, is_last=True)
        else:
            await self._start(_HANDSHAKE_STREAM)
            await self._body(OPEN + self._event(response), is_last=True)

    def close(self) -> None:
        """Sends nothing more from now on."""
        self._timer.cancel()
        if self._sending is not None:
            self._sending.cancel()

    def _wait(self) -> None:
        is_alive = self._is_open or self._call.is_modern
        seconds = PING_SECONDS if is_alive else QUIET_SECONDS
        self._timer = asyncio.get_running_loop().call_later(seconds, self._speak)

    def _speak(self) -> None:
        self._sending = asyncio.create_task(self._say_alive())

    async def _say_alive(self) -> None:
        if self._is_open:
            await self._body(self._ping())
        elif await self._may_open():
            self._is_open = True
            await self._start(_MODERN_STREAM if self._call.is_modern else _HANDSHAKE_STREAM)
            await self._body(OPEN + self._ping() if self._call.is_modern else OPEN)
        self._wait()

    def _ping(self) -> bytes:
        said = "ping" if self._call.is_modern else f"ping - {datetime.now(UTC)}"
        return f": {said}\r\n\r\n".encode()

    def _event(self, response: JSONRPCResponse) -> bytes:
        data = (
            _as_text(response)
            if self._call.is_modern
            else response.model_dump_json(by_alias=True, exclude_unset=True)
        )
        return f"event: message\r\ndata: {data}\r\n\r\n".encode()

    async def _start(self, headers: Headers) -> None:
        await self._send({"type": "http.response.start", "status": 200, "headers": headers})

    async def _body(self, body: bytes, *, is_last: bool = False) -> None:
        await self._send({"type": "http.response.body", "body": body, "more_body": not is_last})


def _as_text(response: JSONRPCResponse) -> str:
    shown = response.model_dump(mode="json", by_alias=True, exclude_none=True)
    return json.dumps(shown, separators=(",", ":"))
