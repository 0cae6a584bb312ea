"""The bus that carries rings to listeners: in memory, and between processes by the channel layer.

Every process hears one group of the channel layer, and each message to that group names the
doorbells that were rung. So a call that waits costs no subscription, and a ring within a process
needs no layer. A layer that hangs delays no call, because a task of its own sends the rings that
have gathered. A ring may get lost on the way: every listener also looks again by itself.
"""

import asyncio
import logging
from collections.abc import Awaitable, Container
from contextvars import Context
from typing import Any, Final, Protocol
from uuid import uuid4
from weakref import WeakKeyDictionary

from channels.layers import get_channel_layer

from projects.process import metrics

logger = logging.getLogger(__name__)

GROUP: Final = "doorbells"
RINGS_PER_MESSAGE: Final = 500
RETRY_SECONDS: Final = 1.0
_PROCESS: Final = uuid4().hex


class Listener(Protocol):
    """Somebody who hears a doorbell, such as an ``asyncio.Event``."""

    def set(self) -> None:
        """Hear that the doorbell was rung."""


class Exchange:
    """The doorbells of one event loop, and their connection to those of other processes.

    Without a channel layer there are no other processes. Messages that name ``process`` are this
    exchange's own, and are not heard again.
    """

    def __init__(self, process: str = _PROCESS) -> None:
        self._process = process
        self._listeners: dict[str, set[Listener]] = {}
        self._unsent: set[str] = set()
        self._has_unsent = asyncio.Event()
        self._tasks: list[asyncio.Task[None]] = []

    def listeners(self) -> dict[str, int]:
        """The number of listeners for each name that has any."""
        return {name: len(heard) for name, heard in self._listeners.items()}

    def join(self, name: str, listener: Listener) -> None:
        """Set ``listener`` whenever ``name`` is rung, here or in another process."""
        self._ensure_connected()
        self._listeners.setdefault(name, set()).add(listener)

    def leave(self, name: str, listener: Listener) -> None:
        """Stop setting ``listener`` when ``name`` is rung."""
        listeners = self._listeners.get(name, set())
        listeners.discard(listener)
        if not listeners:
            self._listeners.pop(name, None)

    def ring(self, name: str, *, besides: Container[Listener] = ()) -> None:
        """Wake the listeners in this process now, and those in other processes soon.

        The listeners in ``besides`` know already.
        """
        self.ring_here(name, besides=besides)
        if self._ensure_connected():
            self._unsent.add(name)
            self._has_unsent.set()

    def ring_one(self, name: str) -> None:
        """Wake the listeners in this process; only if there are none, those in other processes."""
        if not self.ring_here(name):
            self.ring(name)

    def ring_here(self, name: str, *, besides: Container[Listener] = ()) -> bool:
        """Wake the listeners in this process only. Returns True if there are any."""
        listeners = self._listeners.get(name, ())
        for listener in listeners:
            if listener not in besides:
                listener.set()
        return bool(listeners)

    def _ensure_connected(self) -> bool:
        """Start the tasks that connect to other processes. Returns False without a layer."""
        if get_channel_layer() is None:
            return False
        if not self._tasks:
            loops = {"rings to others": self._send, "rings of others": self._receive}
            # In a context of their own: the call that happens to be the first one is not theirs.
            self._tasks = [
                asyncio.create_task(loop(), name=name, context=Context())
                for name, loop in loops.items()
            ]
        return True

    async def _send(self) -> None:
        while not _is_told_to_stop():
            await self._has_unsent.wait()
            names = [self._unsent.pop() for _ in range(min(len(self._unsent), RINGS_PER_MESSAGE))]
            if not self._unsent:
                self._has_unsent.clear()
            message = {"type": "doorbell", "process": self._process, "names": names}
            if error := await _failure(_sent(message)):
                metrics.DOORBELLS_FAILED.inc(len(names))
                logger.warning("doorbells not rung: %s", type(error).__name__)

    async def _receive(self) -> None:
        while not _is_told_to_stop():
            layer: Any = get_channel_layer()
            if error := await _failure(self._hear_others(layer)):
                logger.warning(
                    "doorbells of other processes are not heard: %s", type(error).__name__
                )
                await asyncio.sleep(RETRY_SECONDS)
                await _forget(layer)

    async def _hear_others(self, layer: Any) -> None:
        channel = await layer.new_channel()
        await layer.group_add(GROUP, channel)
        # Rings from before the subscription are not heard, so every listener looks once more.
        for name in self.listeners():
            self.ring_here(name)
        while not _is_told_to_stop():
            self._hear(await layer.receive(channel))

    def _hear(self, message: dict[str, Any]) -> None:
        if message.get("process") != self._process:
            for name in message.get("names", ()):
                self.ring_here(name)


def _is_told_to_stop() -> bool:
    """True if this task was cancelled, even if the CancelledError never reached it.

    ``asyncio.wait_for`` of Python 3.11, with which redis-py sends, swallows a cancellation that
    comes at the moment when the wait ends. A task that then goes on keeps its loop from closing.
    """
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0


async def _failure(work: Awaitable[None]) -> Exception | None:
    """Do the work of a layer; return the error that it raised, if it raised one."""
    try:
        await work
    except Exception as error:  # noqa: BLE001 - a layer may raise anything
        return error
    return None


async def _sent(message: dict[str, Any]) -> None:
    """Send, and try a second time: an idle connection fails once after a restart of Redis."""
    if await _failure(get_channel_layer().group_send(GROUP, message)):
        await get_channel_layer().group_send(GROUP, message)


async def _forget(layer: Any) -> None:
    """Clear the layer after a failed attempt. This exchange is its only user."""
    if error := await _failure(layer.flush()):
        logger.warning("the channel layer cannot be flushed: %s", type(error).__name__)


_exchanges: "WeakKeyDictionary[asyncio.AbstractEventLoop, Exchange]" = WeakKeyDictionary()


def exchange() -> Exchange:
    """The exchange of the running event loop."""
    loop = asyncio.get_running_loop()
    found = _exchanges.get(loop)
    if found is None:
        found = _exchanges[loop] = Exchange()
    return found
