"""Where WebSockets go: one path, one consumer, everything else is closed before it is accepted."""

from collections.abc import Awaitable, Callable
from typing import Any

from projects.consumers import ControllerConsumer

CONTROLLER_PATH = "/ws/controller/"
_controller = ControllerConsumer.as_asgi()


async def controller_socket(scope: dict[str, Any], receive: Callable[[], Awaitable[Any]], send: Callable[[Any], Awaitable[None]]) -> None:
    """Not wrapped in an origin validator: that one rejects a missing Origin, and a daemon never sends one."""
    if scope["path"] == CONTROLLER_PATH:
        await _controller(scope, receive, send)
        return
    await receive()
    await send({"type": "websocket.close"})
