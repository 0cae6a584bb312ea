"""The route of the controllers' WebSocket. Sockets at any other path are refused."""

from collections.abc import Awaitable, Callable
from typing import Any

from projects.link.consumer import ControllerConsumer

CONTROLLER_PATH = "/ws/controller/"
_controller = ControllerConsumer.as_asgi()


async def controller_socket(
    scope: dict[str, Any],
    receive: Callable[[], Awaitable[Any]],
    send: Callable[[Any], Awaitable[None]],
) -> None:
    """Serve a WebSocket on CONTROLLER_PATH; close any other before it is accepted.

    There is no origin validator of Channels around it: that rejects a missing Origin, and a daemon
    never sends one. ``admit`` rejects requests that do have an Origin.
    """
    if scope["path"] == CONTROLLER_PATH:
        await _controller(scope, receive, send)
        return
    await receive()
    await send({"type": "websocket.close"})
