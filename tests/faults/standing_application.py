"""The server's application, and an address whose request stops the event loop for ever."""

import threading
from typing import Any

from config import asgi
from projects.process import watchdog

# A test need not wait for a minute.
watchdog.STILL_SECONDS = 3


async def application(scope: dict[str, Any], receive: Any, send: Any) -> None:
    """Serve as always, but for one path."""
    if scope.get("path") == "/stand-still":
        threading.Event().wait()
    await asgi.application(scope, receive, send)
