"""Answers to browsers that let a page of another origin call ``/mcp`` and read the reply (CORS).

Only for the origins of HOLDLINE_ALLOWED_ORIGINS, which ``guard`` has let in. The token travels in a
header that the page sets: browsers are never told that they may add cookies.
"""

import re
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final

from projects.conf import conf

Send = Callable[[Any], Awaitable[None]]

# Whatever begins with "mcp-" is the protocol's own (Mcp-Session-Id, Mcp-Method, Mcp-Param-...).
_MAY_BE_SENT: Final = re.compile(
    r"accept|authorization|content-type|last-event-id|x-request-id|mcp-[a-z0-9-]+"
)
_MAY_BE_READ: Final = b"Mcp-Session-Id, MCP-Protocol-Version, WWW-Authenticate, Retry-After"
_REMEMBERED_SECONDS: Final = b"600"


def is_page(headers: Mapping[bytes, bytes]) -> bool:
    """True if the request comes from a page of another origin that may call."""
    return headers.get(b"origin", b"").decode("latin-1") in conf.allowed_origins


def readable(send: Send, headers: Mapping[bytes, bytes]) -> Send:
    """``send`` for such a page, which may read every answer.

    It may read a refusal, too: otherwise it could not say what is wrong.
    """
    added = [
        (b"access-control-allow-origin", headers[b"origin"]),
        (b"access-control-expose-headers", _MAY_BE_READ),
        (b"vary", b"Origin"),
    ]

    async def send_readable(message: Any) -> None:
        if message["type"] == "http.response.start":
            message = {**message, "headers": [*message.get("headers", ()), *added]}
        await send(message)

    return send_readable


async def answer_preflight(send: Send, headers: Mapping[bytes, bytes]) -> None:
    """Tells the browser which of the headers it asks for the page may send."""
    asked = (
        headers.get(b"access-control-request-headers", b"")
        .decode("latin-1")
        .lower()
        .replace(" ", "")
        .split(",")
    )
    granted = ", ".join(filter(_MAY_BE_SENT.fullmatch, asked))
    answer = [
        (b"access-control-allow-methods", b"POST"),
        (b"access-control-allow-headers", granted.encode()),
        (b"access-control-max-age", _REMEMBERED_SECONDS),
    ]
    await send({"type": "http.response.start", "status": 204, "headers": answer})
    await send({"type": "http.response.body", "body": b""})
