"""The server's application, and addresses with large answers of which it counts the parts."""

from typing import Any

from config import asgi
from config.edge.requests import guarded
from config.serving import is_body_bounded
from tests.faults.answer_sizes import LARGE_BYTES, MIB, WHOLE_BYTES


async def _answer(scope: dict[str, Any], _receive: Any, send: Any) -> None:
    await send({"type": "http.response.start", "status": 200, "headers": []})
    if scope["path"] == "/whole":
        await send({"type": "http.response.body", "body": bytes(WHOLE_BYTES)})
        return
    for _ in range(LARGE_BYTES // MIB):
        await send({"type": "http.response.body", "body": bytes(MIB), "more_body": True})
    await send({"type": "http.response.body", "body": b""})


_guarded = guarded(_answer, is_body_bounded=is_body_bounded)


async def application(scope: dict[str, Any], receive: Any, send: Any) -> None:
    """Serve as always, but for two paths."""
    serve = _guarded if scope.get("path") in {"/large", "/whole"} else asgi.application
    await serve(scope, receive, send)
