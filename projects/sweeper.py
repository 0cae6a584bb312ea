"""What nobody reports: commands and programs whose time ran out, sessions nobody asks for, output over its limit or past its time.

One task per process, started with its first connection, as ASGI's lifespan is never run by Daphne. Of several processes one sweeps, and
another follows when it dies (``duty``). Every step re-reads under its own lock and is harmless to repeat all the same.
"""

import asyncio
import logging
from datetime import timedelta
from typing import Final
from uuid import UUID

from django.db import transaction
from django.db.models import BigIntegerField, F, Q, Value
from django.db.models.functions import Coalesce, Greatest, Least

from controller_client.protocol.limits import MAX_CHUNK_BYTES
from controller_client.protocol.messages import Stream
from controller_client.protocol.session_state import ACTIVE_STATES, SessionState
from projects import clock, dispatch, duty, file_questions, monitor_log, output_log, rate_limits, retention
from projects.audit_proof import heads_sign
from projects.conf import conf
from projects.database import at_length, in_database
from projects.inbound.ending import end_session
from projects.models import CommandSession
from projects.process_task import Rounds
from projects.retention import ACTOR
from projects.session_actions import terminate_session

logger = logging.getLogger(__name__)

# A holder ends its program itself when its lifetime is over; only a host that is gone gets here.
LIFETIME_SLACK_SECONDS: Final = 30.0
SESSIONS_PER_SWEEP: Final = 100
DUTY: Final = "sweeper"
# Who dies is followed after this many rounds, and not before this time.
DUTY_SWEEPS: Final = 3
SHORTEST_DUTY_SECONDS: Final = 2.0
RECENTLY: Final = timedelta(hours=1)
_STREAMS: Final[tuple[Stream, ...]] = ("stdout", "stderr")


async def _sweep_on_duty() -> None:
    """One round if it is ours to do, kept ours until its end. Raises StorageUnavailable."""
    seconds = max(SHORTEST_DUTY_SECONDS, DUTY_SWEEPS * conf.sweep_seconds)
    if not await in_database(duty.take, DUTY, seconds):
        return
    sweeping = asyncio.create_task(sweep(), name="sweep")
    try:
        while not (await asyncio.wait({sweeping}, timeout=seconds / 3))[0]:
            if not await in_database(duty.take, DUTY, seconds):
                logger.warning("another process sweeps: this one was away for too long")
                return
        await sweeping
    finally:
        sweeping.cancel()
        await asyncio.gather(sweeping, return_exceptions=True)


async def sweep() -> None:
    """One round. Raises StorageUnavailable."""
    for session_id in await at_length(overdue_sessions):
        if await in_database(end_overdue, session_id):
            await dispatch.ring_session(session_id)
    for project_id, session_id in await at_length(idle_sessions):
        if (controller_id := await in_database(end_idle, project_id, session_id)) is not None:
            await dispatch.ring_controller(controller_id)
    for session_id, retained_bytes in await at_length(oversized_sessions):
        for stream in _STREAMS:
            # Batch by batch, so that transactions of others fit in between.
            while await in_database(output_log.trim, session_id, stream, retained_bytes):
                pass
    await retention.expire()
    await at_length(heads_sign, timedelta(seconds=conf.audit_sign_seconds))
    await in_database(file_questions.forget_expired)
    await in_database(monitor_log.forget_stopped)
    await in_database(rate_limits.forget_idle)


def overdue_sessions() -> list[UUID]:
    """Sessions that wait for something that will not come."""
    active = CommandSession.objects.filter(state__in=sorted(ACTIVE_STATES)).filter(_is_overdue())
    return list(active.values_list("id", flat=True))


def _is_overdue() -> Q:
    now = clock.now()
    is_away = Q(controller__lease_expires_at__isnull=True) | Q(controller__lease_expires_at__lt=now)
    start = Q(commands__type__in=dispatch.START_TYPES, commands__settled_at__isnull=True)
    never_sent = Q(state=SessionState.PENDING) & start & Q(commands__expires_at__lt=now)
    # Its answer may be on its way as long as the host is online, and for a while after it went.
    never_answered = Q(state=SessionState.SENT) & is_away & start & Q(commands__expires_at__lt=now - timedelta(seconds=conf.lease_seconds))
    return never_sent | never_answered | (Q(state=SessionState.RUNNING) & is_away)


@transaction.atomic
def end_overdue(session_id: UUID) -> bool:
    """Ends the session if it is still overdue: EXPIRED if it was never started, LOST if its lifetime ran out on a host that is away."""
    locked = CommandSession.objects.select_for_update(no_key=True, of=("self",))
    session = locked.filter(id=session_id).first()
    if session is None or not CommandSession.objects.filter(_is_overdue(), id=session_id).exists():
        return False
    if session.state != SessionState.RUNNING:
        message = "the host did not take the command in time"
        end_session(session, SessionState.EXPIRED, actor=ACTOR, failure_code="EXPIRED", failure_message=message)
        return True
    began = session.started_at or session.created_at
    if began + timedelta(seconds=session.lifetime_seconds + LIFETIME_SLACK_SECONDS) > clock.now():
        return False
    notes = [*session.notes, "its lifetime ran out while the host was away"]
    end_session(session, SessionState.LOST, actor=ACTOR, end_reason="lost", ended_by="host", notes=notes)
    return True


def idle_sessions() -> list[tuple[UUID, UUID]]:
    """(project, session) of background sessions that no caller asked for in a while."""
    return list(CommandSession.objects.filter(_is_idle()).values_list("project_id", "id")[:SESSIONS_PER_SWEEP])


def _is_idle() -> Q:
    since = clock.now() - timedelta(seconds=conf.background_idle_seconds)
    forgotten = Q(kind=CommandSession.Kind.BACKGROUND, state=SessionState.RUNNING, touched_at__lt=since)
    # One whose end was asked for is on its way out.
    return forgotten & Q(ended_by="")


@transaction.atomic
def end_idle(project_id: UUID, session_id: UUID) -> UUID | None:
    """Has the session ended if it is still idle; the controller to be rung."""
    if not CommandSession.objects.select_for_update(no_key=True).filter(_is_idle(), id=session_id).exists():
        return None
    return terminate_session(project_id, session_id, ACTOR, ended_by="idle").controller_id


def oversized_sessions() -> list[tuple[UUID, int]]:
    """Sessions that keep more of a stream than they may, and how much that is: those that still get some, or did until lately."""
    retained = Coalesce(F("retained_bytes"), Value(conf.output_retained_bytes), output_field=BigIntegerField())
    may_grow = Q(state__in=sorted(ACTIVE_STATES)) | Q(ended_at__gt=clock.now() - RECENTLY)
    rows = CommandSession.objects.filter(may_grow).annotate(
        retained=retained,
        excess=Greatest(F("stdout_next_offset") - F("stdout_first_offset"), F("stderr_next_offset") - F("stderr_first_offset"))
        - F("retained"),
    )
    slack = Least(Value(output_log.TRIM_SLACK_BYTES), Greatest(Value(MAX_CHUNK_BYTES), F("retained")), output_field=BigIntegerField())
    return list(rows.filter(excess__gt=slack).values_list("id", "retained")[:SESSIONS_PER_SWEEP])


ROUNDS: Final = Rounds("sweeper", _sweep_on_duty, lambda: conf.sweep_seconds)
