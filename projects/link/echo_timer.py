"""The echo time of a host: from here to a terminal of the host and back, as a typed key takes it.

It says more of a host's health than its heartbeat does. It starts no program and has no session.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable
from contextlib import suppress
from random import SystemRandom
from typing import Final
from uuid import UUID

from controller_client.protocol.messages import Message, Ping, Pong
from projects.errors.server import StorageUnavailable
from projects.link.inbound.stored_text import stored_text
from projects.models import Controller
from projects.storage import clock
from projects.storage.access import in_database
from projects.wakeups import doorbells

PERIOD_SECONDS: Final = 60.0
FIRST_WITHIN_SECONDS: Final = 10.0
"""The first measurement of a connection. Hosts that come back together are not measured at once."""
ANSWER_SECONDS: Final = 10.0


class EchoTimer:
    """Measures the host of one connection; ``send`` puts a frame on its socket."""

    def __init__(self, controller_id: UUID, send: Callable[[Message], Awaitable[None]]) -> None:
        self._controller_id = controller_id
        self._send = send
        self._asked = ""
        self._echoed: asyncio.Future[Pong] | None = None

    def heard(self, pong: Pong) -> None:
        """Take an answer that came on this connection."""
        if self._echoed is None or self._echoed.done():
            return
        if pong.echoed and pong.reply_to == self._asked:
            self._echoed.set_result(pong)

    async def measure(self) -> None:
        """Measure every PERIOD_SECONDS, and whenever somebody rings."""
        async with doorbells.Doorbell(doorbells.echo_group(self._controller_id)) as bell:
            await _rung(bell, SystemRandom().uniform(0.0, FIRST_WITHIN_SECONDS))
            while True:
                with suppress(TimeoutError, StorageUnavailable):
                    await self._measure_once()
                await _rung(bell, PERIOD_SECONDS)

    async def _measure_once(self) -> None:
        ping = Ping(echo=True)
        self._asked = ping.id
        self._echoed = asyncio.get_running_loop().create_future()
        began = time.monotonic()
        await self._send(ping)
        # A daemon that knows no echo answers with none.
        async with asyncio.timeout(ANSWER_SECONDS):
            pong = await self._echoed
        await in_database(_store, self._controller_id, time.monotonic() - began, pong)


async def _rung(bell: doorbells.Doorbell, seconds: float) -> None:
    """Return at a ring, or after ``seconds``. A lost ring costs no more than these."""
    # ``bell.wait`` would return once a second, and each host would be measured as often.
    with suppress(TimeoutError):
        async with asyncio.timeout(seconds):
            await bell.rung()


def _store(controller_id: UUID, seconds: float, pong: Pong) -> None:
    Controller.objects.filter(pk=controller_id).update(
        echo_ms=1000 * seconds,
        echoed_at=clock.now(),
        policy_digest=stored_text(pong.policy, 64),
        is_stopped=pong.is_stopped,
    )
