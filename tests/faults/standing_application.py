"""The server's application, and an address whose request stops the event loop for ever."""

import threading
from typing import Any

from config import asgi
from projects.process import watchdog

PATH = "/stand-still"

# A test need not wait for a minute.
watchdog.STILL_SECONDS = 3


async def application(scope: dict[str, Any], receive: Any, send: Any) -> None:
    """Serve as always, but for ``PATH``."""
    if scope.get("path") == PATH:
        threading.Event().wait()
    await asgi.application(scope, receive, send)
