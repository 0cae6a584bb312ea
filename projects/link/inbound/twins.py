"""Find out that two daemons run with one identity, and raise the alarm.

A daemon has one connection at a time: it closes the old one before it says HELLO on the next. So a
peer that still answers on a connection which was taken over is another daemon, with a copy of the
first daemon's state directory. The server cannot tell which of the two is the copy. Their sessions
are safe: a session that a HELLO does not name is not lost at once. It is lost when connections that
did not name it have lasted for a lease in all, with none between them that named it
(``lose_unnamed``). Until then a daemon that did not name it is neither sent anything for it nor
heard about it (``ConnectionMemory.unnamed``). The same holds for a session whose START was sent to
the daemon with another lock and not answered.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Collection
from contextlib import suppress
from datetime import datetime, timedelta
from typing import Final
from uuid import UUID

from django.db import transaction
from django.db.models import F

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
COUNT_SECONDS: Final = 2.0
"""How often a connection counts the time for which its HELLO has left sessions unnamed."""
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
        """Count how long this connection lasts, and end the sessions that were unnamed for a lease.

        The count is kept in the database, as a connection may break before it has lasted so long.
        """
        counted = 0.0
        while self._unnamed and counted < conf.lease_seconds:
            step = min(COUNT_SECONDS, conf.lease_seconds)
            await asyncio.sleep(step)
            with suppress(StorageUnavailable):
                lost = await in_database(
                    lose_unnamed, self._controller_id, self._epoch, self._unnamed, step
                )
                counted += step
                for session_id in lost:
                    await doorbells.ring_session(session_id)


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
def lose_unnamed(
    controller_id: UUID, epoch: int, unnamed: Collection[UUID], seconds: float
) -> list[str]:
    """Count ``seconds`` more of a connection whose HELLO did not name these sessions.

    Returns the ids of the sessions that are lost now: those that are not over and were unnamed for
    a lease in all. Does nothing if another connection has taken over since, as then the HELLO of
    that one decides.
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
    unnamed_for = dict(running.order_by("id").values_list("id", "unnamed_seconds"))
    left = conf.lease_seconds - seconds
    gone = [session_id for session_id, before in unnamed_for.items() if before >= left]
    for session_id in gone:
        end_lost(
            ending_session(session_id), actor=f"controller:{controller.name}", note=NOTE_UNKNOWN
        )
    CommandSession.objects.filter(id__in=unnamed_for.keys() - gone).update(
        unnamed_seconds=F("unnamed_seconds") + seconds
    )
    return [str(session_id) for session_id in gone]
