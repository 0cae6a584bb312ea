"""Rules for every request and handshake under any server, as an ASGI layer.

A header that decides something stands once, a path has one spelling, and a body is bounded. A proxy
in front and this server must not read one request in two ways. With two ``Host`` or
``Authorization`` headers, the proxy could use the first and this server the second. A path with
``%`` escapes could pass a rule of the proxy and still name the forbidden path here.
"""

import asyncio
import json
from collections.abc import Awaitable, Callable, Iterable, Sequence
from contextlib import suppress
from typing import Any, Final

from config.edge import bounds
from projects.conf import conf

Scope = dict[str, Any]
Receive = Callable[[], Awaitable[Any]]
Send = Callable[[Any], Awaitable[None]]
Application = Callable[[Scope, Receive, Send], Awaitable[None]]

_ONCE: Final = frozenset({b"host", b"origin", b"authorization", b"content-type", b"content-length"})
_GONE: Final = {"type": "http.disconnect"}


def repeated_header(headers: Iterable[tuple[bytes, bytes]]) -> str:
    """The lower-case name of a header that stands twice and must not; empty if there is none."""
    seen = set()
    for name, _ in headers:
        if name in _ONCE:
            if name in seen:
                return name.decode()
            seen.add(name)
    return ""


def guarded(application: Application, *, is_body_bounded: bool) -> Application:
    """``application`` behind the rules of this module.

    ``is_body_bounded``: the server itself refuses large bodies, and passes on complete ones.
    """

    async def guard(scope: Scope, receive: Receive, send: Send) -> None:
        refusal = _refusal(scope)
        if scope["type"] == "websocket":
            await (
                _refuse_handshake(scope, receive, send, *refusal)
                if refusal
                else application(scope, receive, send)
            )
        elif refusal:
            await answer(send, *refusal)
        elif is_body_bounded:
            await application(scope, receive, send)
        else:
            await _BoundedRequest(receive, send).run(application, scope)

    return guard


def _refusal(scope: Scope) -> tuple[int, bytes] | None:
    if name := repeated_header(scope["headers"]):
        return 400, _as_json(f"the header {name} is repeated")
    if b"%" in scope.get("raw_path", b""):
        return 404, _as_json("paths are served as they are, without % escapes")
    return None


def _as_json(error: str) -> bytes:
    return json.dumps({"error": error}).encode()


async def answer(
    send: Send,
    status: int,
    body: bytes,
    *headers: tuple[bytes, bytes],
    content_type: bytes = b"application/json",
    has_more: bool = False,
) -> None:
    """Send an answer; with ``has_more``, the caller ends it with one more part."""
    described = (
        (b"content-type", content_type),
        (b"content-length", str(len(body)).encode()),
        *headers,
    )
    await send({"type": "http.response.start", "status": status, "headers": [*described]})
    await send({"type": "http.response.body", "body": body, "more_body": has_more})


def parts(message: Any) -> Sequence[Any]:
    """The messages that send ``message``, none with more of a body than one part."""
    body = message.get("body", b"")
    if len(body) <= bounds.PART_BYTES:
        return (message,)
    last = (len(body) - 1) // bounds.PART_BYTES * bounds.PART_BYTES
    return [
        {
            **message,
            "body": body[start : start + bounds.PART_BYTES],
            "more_body": start < last or message.get("more_body", False),
        }
        for start in range(0, len(body), bounds.PART_BYTES)
    ]


async def _refuse_handshake(
    scope: Scope, receive: Receive, send: Send, status: int, body: bytes
) -> None:
    await receive()
    if "websocket.http.response" not in scope.get("extensions", {}):
        await send({"type": "websocket.close"})
        return

    async def send_to_websocket(message: Any) -> None:
        await send({**message, "type": f"websocket.{message['type']}"})

    await answer(send_to_websocket, status, body)


class _BoundedRequest:
    """One request under a server that passes a body on in the parts in which it arrives."""

    def __init__(self, receive: Receive, send: Send) -> None:
        self._receive, self._send = receive, send
        self._task: asyncio.Task[Any] | None = None
        self._bytes = 0
        self._authorization = b""
        self._is_whole = self._is_answered = self._is_refused = self._gave_way = False

    async def run(self, application: Application, scope: Scope) -> None:
        announced = next(
            (value for name, value in scope["headers"] if name == b"content-length"), b"0"
        )
        if (
            not announced.isdigit()
            or len(announced) > 18
            or int(announced) > conf.data_upload_max_memory_size
        ):
            await self._refuse(bounds.TOO_LARGE)
            return
        self._task = asyncio.current_task()
        self._authorization = dict(scope["headers"]).get(b"authorization", b"")
        try:
            await application(scope, self.receive, self.send)
        except asyncio.CancelledError:
            if not self._gave_way or self._task is None:
                raise
            self._task.uncancel()
        finally:
            bounds.HELD.release(self)
        # Only now: in the handler above, the error's traceback still holds the parts of the body.
        if self._gave_way:
            await self._refuse(bounds.TOO_MANY)

    async def receive(self) -> Any:
        """The server's ``receive``; refuses a body that grows too large.

        To the application, the sender of a refused body has disconnected.
        """
        if self._is_refused:
            return _GONE
        message = await self._receive()
        if message["type"] == "http.request":
            size = len(message.get("body", b""))
            self._bytes += size
            self._is_whole = not message.get("more_body", False)
            if self._bytes > conf.data_upload_max_memory_size:
                del message
                await self._refuse(bounds.TOO_LARGE)
                return _GONE
            if size:
                bounds.HELD.grow(self, size, self._give_way, self._authorization)
                if self._gave_way:
                    # The application never gets the body, or it could begin with its work.
                    await asyncio.sleep(0)
            if self._is_whole:
                bounds.HELD.complete(self)
        return message

    async def send(self, message: Any) -> None:
        """The server's ``send``, except that nothing follows a refusal."""
        if not self._is_refused:
            self._is_answered = True
            for part in parts(message):
                await self._send(part)

    def _give_way(self) -> None:
        self._gave_way = True
        if self._task is not None:
            self._task.cancel()

    async def _refuse(self, status: int) -> None:
        """Answer, then drop the rest of the body for a moment.

        Many peers read the answer only when they have stopped sending.
        """
        if self._is_answered:
            return
        self._is_answered = self._is_refused = True
        bounds.HELD.release(self)
        body, closing = bounds.refusal_body(status), (b"connection", b"close")
        await answer(self._send, status, body, closing, has_more=True)
        with suppress(TimeoutError):
            async with asyncio.timeout(bounds.LINGER_SECONDS):
                await self._drop()
        await self._send({"type": "http.response.body", "body": b""})

    async def _drop(self) -> None:
        dropped = 0
        while not self._is_whole and dropped <= bounds.LINGER_BYTES:
            dropped += await self._drop_one()

    async def _drop_one(self) -> int:
        """Receive one part of the body; returns its size.

        A method of its own, so that no variable keeps one part in memory while the next is awaited.
        """
        message = await self._receive()
        self._is_whole = message["type"] != "http.request" or not message.get("more_body", False)
        return len(message.get("body", b""))
