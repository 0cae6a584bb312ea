"""Tasks of which each process has one: begun with its first connection, on the loop that serves, and again if that is another one."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any

from projects.errors import StorageUnavailable

logger = logging.getLogger(__name__)


class ProcessTask:
    """``work`` runs until it is cancelled with its loop. A task needs a reference that lasts: this is it."""

    def __init__(self, name: str, work: Callable[[], Coroutine[Any, Any, None]]) -> None:
        self._name = name
        self._work = work
        self._task: asyncio.Task[None] | None = None

    def ensure_running(self) -> None:
        """Starts it on the running loop unless it runs there already."""
        if self._task is None or self._task.done() or self._task.get_loop() is not asyncio.get_running_loop():
            self._task = asyncio.create_task(self._work(), name=self._name)


class Rounds(ProcessTask):
    """``round_`` again and again, with ``seconds()`` between two of them; ``is_eager``: the first one at once. None ends it by failing."""

    def __init__(self, name: str, round_: Callable[[], Awaitable[object]], seconds: Callable[[], float], *, is_eager: bool = True) -> None:
        super().__init__(name, self._go_round)
        self._round = round_
        self._seconds = seconds
        self._is_eager = is_eager

    async def _go_round(self) -> None:
        if not self._is_eager:
            await asyncio.sleep(self._seconds())
        while True:
            try:
                await self._round()
            except StorageUnavailable:
                logger.error("%s: the database is away, the next round does what this one could not", self._name)
            except Exception:
                # A border: what is wrong with one round must not end all that would follow.
                logger.exception("%s: a round failed", self._name)
            await asyncio.sleep(self._seconds())
