"""The server's application, and an address whose request stops the event loop for ever."""

import threading
from typing import Any

from config import asgi
from projects.process import watchdog


class _Impatient(watchdog.Watchdog):
    """Ends a server that was told to stand still: a test need not wait for a minute.

    On a busy machine the server that goes on may stand for seconds, too.
    """

    is_told = False

    def look(self) -> bool:
        if self.is_told:
            self._still_seconds = 3
        return super().look()


vars(watchdog).update(Watchdog=_Impatient)


async def application(scope: dict[str, Any], receive: Any, send: Any) -> None:
    """Serve as always, but for one path."""
    if scope.get("path") == "/stand-still":
        _Impatient.is_told = True
        threading.Event().wait()
    await asgi.application(scope, receive, send)
