"""How a ring reaches who listens: in memory within a process, and through the channel layer between processes.

Every process hears one group of the layer, and each message on it names what was rung. So a call that waits costs no subscription,
a ring within a process needs no layer, and a layer that hangs holds up nobody: a task of its own sends what has gathered meanwhile.
Anything may get lost on the way; who waits looks again anyway.
"""

import asyncio
import logging
from typing import Any, Final
from uuid import uuid4
from weakref import WeakKeyDictionary

from channels.layers import get_channel_layer

from projects import metrics

logger = logging.getLogger(__name__)

GROUP: Final = "doorbells"
RINGS_PER_MESSAGE: Final = 500
RETRY_SECONDS: Final = 1.0
_PROCESS: Final = uuid4().hex


class Exchange:
    """The doorbells of one event loop. Without a channel layer it is only that. What comes from its own ``process`` was heard already."""

    def __init__(self, process: str = _PROCESS) -> None:
        self._process = process
        self._listeners: dict[str, set[asyncio.Event]] = {}
        self._unsent: set[str] = set()
        self._has_unsent = asyncio.Event()
        self._tasks: list[asyncio.Task[None]] = []

    def listeners(self) -> dict[str, int]:
        """How many listen, to what."""
        return {name: len(events) for name, events in self._listeners.items()}

    def join(self, name: str, event: asyncio.Event) -> None:
        """``event`` is set whenever ``name`` is rung, here or in another process."""
        self._ensure_connected()
        self._listeners.setdefault(name, set()).add(event)

    def leave(self, name: str, event: asyncio.Event) -> None:
        """It is set no more."""
        events = self._listeners.get(name, set())
        events.discard(event)
        if not events:
            self._listeners.pop(name, None)

    def ring(self, name: str) -> None:
        """Wakes who listens here now, and the others soon."""
        self.ring_here(name)
        if self._ensure_connected():
            self._unsent.add(name)
            self._has_unsent.set()

    def ring_one(self, name: str) -> None:
        """Where one listener is enough: others are woken only if nobody listens here."""
        if name not in self._listeners:
            self.ring(name)
        else:
            self.ring_here(name)

    def ring_here(self, name: str) -> bool:
        """Wakes who listens in this process, and nobody else; whether anybody does."""
        events = self._listeners.get(name, ())
        for event in events:
            event.set()
        return bool(events)

    def _ensure_connected(self) -> bool:
        """Whether there is a layer."""
        if get_channel_layer() is None:
            return False
        if not self._tasks:
            loops = {"rings to others": self._send, "rings of others": self._receive}
            self._tasks = [asyncio.create_task(loop(), name=name) for name, loop in loops.items()]
        return True

    async def _send(self) -> None:
        while not _is_told_to_stop():
            await self._has_unsent.wait()
            names = [self._unsent.pop() for _ in range(min(len(self._unsent), RINGS_PER_MESSAGE))]
            if not self._unsent:
                self._has_unsent.clear()
            message = {"type": "doorbell", "process": self._process, "names": names}
            try:
                await _sent(message)
            except Exception as error:  # noqa: BLE001 - a layer may raise anything
                metrics.DOORBELLS_FAILED.inc(len(names))
                logger.warning("doorbells not rung: %s", type(error).__name__)

    async def _receive(self) -> None:
        while not _is_told_to_stop():
            layer: Any = get_channel_layer()
            try:
                await self._hear_others(layer)
            except Exception as error:  # noqa: BLE001
                logger.warning("doorbells of other processes are not heard: %s", type(error).__name__)
                await asyncio.sleep(RETRY_SECONDS)
                await _forget(layer)

    async def _hear_others(self, layer: Any) -> None:
        channel = await layer.new_channel()
        await layer.group_add(GROUP, channel)
        # What was rung before is not heard.
        for name in self.listeners():
            self.ring_here(name)
        while not _is_told_to_stop():
            self._hear(await layer.receive(channel))

    def _hear(self, message: dict[str, Any]) -> None:
        if message.get("process") != self._process:
            for name in message.get("names", ()):
                self.ring_here(name)


def _is_told_to_stop() -> bool:
    """Whether this task was cancelled, though nothing was raised: what waits in a library may end at that very moment, and hide it.

    ``asyncio.wait_for`` of Python 3.11 does, which redis-py sends with; and a task that goes on keeps its loop from ever closing.
    """
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0


async def _sent(message: dict[str, Any]) -> None:
    """A connection that has been idle while Redis was restarted fails once."""
    try:
        await get_channel_layer().group_send(GROUP, message)
    except Exception:  # noqa: BLE001
        await get_channel_layer().group_send(GROUP, message)


async def _forget(layer: Any) -> None:
    """What a failed attempt left in the layer; nobody else uses it."""
    try:
        await layer.flush()
    except Exception as error:  # noqa: BLE001
        logger.warning("the channel layer cannot be flushed: %s", type(error).__name__)


_exchanges: "WeakKeyDictionary[asyncio.AbstractEventLoop, Exchange]" = WeakKeyDictionary()


def exchange() -> Exchange:
    """The running loop's."""
    loop = asyncio.get_running_loop()
    found = _exchanges.get(loop)
    if found is None:
        found = _exchanges[loop] = Exchange()
    return found
