"""Per-process background tasks.

They start with the first connection and restart if the event loop changes.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any

from projects.errors.server import StorageUnavailable

logger = logging.getLogger(__name__)


class ProcessTask:
    """Runs ``work`` on the event loop until the loop cancels it.

    It holds the reference that keeps the task alive.
    """

    def __init__(self, name: str, work: Callable[[], Coroutine[Any, Any, None]]) -> None:
        self._name = name
        self._work = work
        self._task: asyncio.Task[None] | None = None

    def ensure_running(self) -> None:
        """Start the task on the running event loop, unless it runs there already."""
        if (
            self._task is None
            or self._task.done()
            or self._task.get_loop() is not asyncio.get_running_loop()
        ):
            self._task = asyncio.create_task(self._work(), name=self._name)


class Rounds(ProcessTask):
    """Runs ``round_`` repeatedly, with ``seconds()`` between two rounds.

    ``is_eager``: the first round runs at once. A round that fails is logged; the next one follows.
    """

    def __init__(
        self,
        name: str,
        round_: Callable[[], Awaitable[object]],
        seconds: Callable[[], float],
        *,
        is_eager: bool = True,
    ) -> None:
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
                logger.error(
                    "%s: the database is away; the next round will do the work of this one",
                    self._name,
                )
            except Exception:
                # An error in one round must not end all later rounds.
                logger.exception("%s: a round failed", self._name)
            await asyncio.sleep(self._seconds())
