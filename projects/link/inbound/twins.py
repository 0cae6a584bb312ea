"""Find out that two daemons run with one identity, and raise the alarm.

A daemon has one connection at a time: it closes the old one before it says HELLO on the next. So a
peer that still answers on a connection which was taken over is another daemon, with a copy of the
first daemon's state directory. The server cannot tell which of the two is the copy. Their sessions
are safe: a session that a HELLO does not name is not lost before that connection has lasted for the
length of a lease (``lose_unnamed``), and until then a daemon that did not name it is neither sent
anything for it nor heard about it (``ConnectionMemory.unnamed``). The same holds for a session
whose START was sent to the daemon with another lock and not answered.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Collection
from contextlib import suppress
from datetime import datetime, timedelta
from typing import Final
from uuid import UUID

from django.db import transaction

from controller_client.protocol.messages import Message, Ping, Pong
from controller_client.protocol.session_state import SessionState
from projects.attention.events import Cause, attention_raise
from projects.audit.log import audit
from projects.conf import conf
from projects.errors.server import StorageUnavailable
from projects.models import AttentionKind, CommandSession, Controller
from projects.process import metrics
from projects.sessions.state import end_lost, ending_session
from projects.storage import clock
from projects.storage.access import in_database
from projects.wakeups import doorbells

logger = logging.getLogger(__name__)

ANSWER_SECONDS: Final = 2.0
"""The wait for an answer on a connection that was taken over."""
ALARM_AGAIN_AFTER: Final = timedelta(minutes=1)
"""One record in this time, although two daemons take over from each other again and again."""
NOTE_UNKNOWN: Final = "the host no longer knows the session"
_TWO_AT_ONCE: Final = (
    "two daemons with one identity and credential are running, so one is a copy of the other's "
    "state directory: revoke the controller, and enrol the host again"
)


class TwinWatch:
    """The watch of one connection for a second daemon, and for sessions that HELLO did not name."""

    def __init__(self, controller_id: UUID, send: Callable[[Message], Awaitable[None]]) -> None:
        self._controller_id = controller_id
        self._send = send
        self._asked = ""
        self._answered = asyncio.Event()
        self._epoch = 0
        self._unnamed: Collection[UUID] = ()

    def greeted(self, epoch: int, unnamed: Collection[UUID]) -> None:
        """Remember the sessions that HELLO did not name."""
        self._epoch, self._unnamed = epoch, unnamed

    def heard(self, pong: Pong) -> None:
        """Take an answer that came on this connection."""
        if self._asked and pong.reply_to == self._asked:
            self._answered.set()

    async def look(self) -> None:
        """Ping the peer of a connection that was taken over; if it answers, raise the alarm.

        Raises no exception.
        """
        ping = Ping()
        self._asked = ping.id
        with suppress(TimeoutError, StorageUnavailable):
            await self._send(ping)
            async with asyncio.timeout(ANSWER_SECONDS):
                await self._answered.wait()
            await in_database(alarm_raise, self._controller_id, "", _TWO_AT_ONCE)

    async def miss(self) -> None:
        """End the sessions that HELLO did not name, once this connection has lasted for a lease."""
        await asyncio.sleep(conf.lease_seconds)
        while True:
            with suppress(StorageUnavailable):
                for session_id in await in_database(
                    lose_unnamed, self._controller_id, self._epoch, self._unnamed
                ):
                    await doorbells.ring_session(session_id)
                return
            await asyncio.sleep(ANSWER_SECONDS)


@transaction.atomic
def alarm_raise(controller_id: UUID, hostname: str, reason: str) -> None:
    """Report that a credential may have a copy.

    The alarm is shown on the page of the controller and is written into the audit log, the metrics
    and the log.
    """
    controller = Controller.objects.select_for_update(no_key=True).get(id=controller_id)
    alarm = f"{hostname}: {reason}"[:512] if hostname else reason
    now = clock.now()
    if (
        controller.alarm == alarm
        and controller.alarmed_at is not None
        and now - controller.alarmed_at < ALARM_AGAIN_AFTER
    ):
        return
    Controller.objects.filter(id=controller_id).update(alarmed_at=now, alarm=alarm)
    about = (controller.project_id, controller_id, None)
    detail = {"hostname": hostname, "reason": reason}
    audit(f"controller:{controller.name}", "controller.second_instance", about, detail)
    if controller.alarmed_at is None:
        attention_raise(_alarm(controller, now))
    metrics.SECOND_INSTANCES.inc()
    logger.critical(
        "ALARM: a second daemon showed itself as controller %s: %s", controller_id, reason
    )


def _alarm(controller: Controller, now: datetime) -> Cause:
    return Cause(
        kind=AttentionKind.HOST_ALARM,
        key=f"host_alarm:{controller.id}:{now.isoformat()}",
        project_id=controller.project_id,
        controller_id=controller.id,
    )


@transaction.atomic
def lose_unnamed(controller_id: UUID, epoch: int, unnamed: Collection[UUID]) -> list[str]:
    """End the sessions that the HELLO of a connection did not name and that are not over.

    Returns the ids of these sessions, which are lost. Does nothing if another connection has taken
    over since: then its HELLO decides.
    """
    controllers = Controller.objects.select_for_update(no_key=True)
    controller = controllers.filter(id=controller_id, epoch=epoch).first()
    if controller is None:
        return []
    running = CommandSession.objects.select_for_update(no_key=True).filter(
        controller_id=controller_id,
        id__in=unnamed,
        state__in=(SessionState.SENT, SessionState.RUNNING),
    )
    gone = list(running.order_by("id").values_list("id", flat=True))
    for session_id in gone:
        end_lost(
            ending_session(session_id), actor=f"controller:{controller.name}", note=NOTE_UNKNOWN
        )
    return [str(session_id) for session_id in gone]
