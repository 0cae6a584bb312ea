"""Ends and removes what nobody reports: expired commands, lost programs, idle sessions, old output.

Each process has one task, started with its first connection, because Daphne never runs ASGI's
lifespan. Of several processes one sweeps, and another takes over when it dies (``leader_lease``).
Every step reads again under its own lock, and may be repeated without harm.
"""

import asyncio
import logging
from datetime import datetime, timedelta
from typing import Final
from uuid import UUID

from django.db import transaction
from django.db.models import BigIntegerField, F, OuterRef, Q, Subquery, Value
from django.db.models.functions import Coalesce, Greatest, Least

from controller_client.protocol.limits import MAX_CHUNK_BYTES, START_TTL_SECONDS
from controller_client.protocol.messages import Stream
from controller_client.protocol.session_state import SessionState
from projects.accounts import rate_limits
from projects.attention import messages as attention_messages
from projects.audit.marks import heads_sign
from projects.conf import conf
from projects.models import CommandSession, Controller, ControllerCommand, SessionEvent
from projects.monitors import log as monitor_log
from projects.monitors import questions as file_questions
from projects.output import log as output_log
from projects.output.recording import events
from projects.process import leader_lease as duty
from projects.process.task import Rounds
from projects.sessions import lifetimes, outbox
from projects.sessions.approvals.answering import (
    approval_expire,
    approvals_forget,
    approvals_overdue,
)
from projects.sessions.selectors import IS_ACTIVE
from projects.sessions.state import end_lost, end_session
from projects.sessions.transactions.control import terminate_session
from projects.sessions.transactions.keyboard import abandoned_keyboards, keyboard_expire
from projects.storage import clock, room
from projects.storage.access import in_database, in_upkeep
from projects.upkeep import retention
from projects.upkeep.put_back import PutBack
from projects.upkeep.retention import ACTOR
from projects.wakeups import doorbells

logger = logging.getLogger(__name__)

# A holder ends its own program at the end of the lifetime. Only a host that is gone gets this far.
LIFETIME_SLACK_SECONDS: Final = 30.0
SESSIONS_PER_SWEEP: Final = 100
DUTY: Final = "sweeper"
# A leader that died is replaced after this many rounds, and not before this time.
DUTY_SWEEPS: Final = 3
SHORTEST_DUTY_SECONDS: Final = 2.0
RECENTLY: Final = timedelta(hours=1)
_DISK: Final = room.Watch()
_PUT_BACK: Final = PutBack()
_STREAMS: Final[tuple[Stream, ...]] = ("stdout", "stderr")


async def _sweep_on_duty() -> None:
    """Runs one round if this process has the leader lease, and renews the lease meanwhile.

    Raises StorageUnavailable.
    """
    seconds = max(SHORTEST_DUTY_SECONDS, DUTY_SWEEPS * conf.sweep_seconds)
    if not await in_database(duty.take, DUTY, seconds):
        return
    sweeping = asyncio.create_task(sweep(), name="sweep")
    try:
        while not (await asyncio.wait({sweeping}, timeout=seconds / 3))[0]:
            if not await in_database(duty.take, DUTY, seconds):
                logger.warning("another process sweeps now: this process was away for too long")
                return
        await sweeping
    finally:
        sweeping.cancel()
        await asyncio.gather(sweeping, return_exceptions=True)


async def sweep() -> None:
    """Runs one round of all upkeep. Raises StorageUnavailable."""
    await in_database(_DISK.look)
    await in_database(_PUT_BACK.moments)
    for session_id in await in_upkeep(overdue_sessions):
        if await in_database(end_overdue, session_id):
            await doorbells.ring_session(session_id)
    idle = await in_upkeep(idle_sessions) if clock.can_tell(conf.background_idle_seconds) else []
    for project_id, session_id in idle:
        if (controller_id := await in_database(end_idle, project_id, session_id)) is not None:
            await doorbells.ring_controller(controller_id)
    for left in await in_upkeep(abandoned_keyboards):
        told = await in_database(keyboard_expire, left)
        await doorbells.ring_session(left.session_id)
        if told is not None and told.to_ring is not None:
            await doorbells.ring_controller(told.to_ring)
    await _expire_approvals()
    for session_id, retained_bytes in await in_upkeep(oversized_sessions):
        for stream in _STREAMS:
            # Batch by batch, so that other transactions fit in between.
            while await in_database(output_log.trim, session_id, stream, retained_bytes):
                pass
    for session_id in await in_upkeep(overfull_sessions):
        while await in_database(events.trim, session_id):
            pass
    await retention.expire()
    await in_upkeep(heads_sign, timedelta(seconds=conf.audit_sign_seconds))
    await in_database(file_questions.forget_expired)
    await in_database(monitor_log.forget_stopped)
    await in_database(rate_limits.forget_idle)
    await in_database(attention_messages.forget_old)


async def _expire_approvals() -> None:
    for approval_id in await in_upkeep(approvals_overdue):
        if await in_database(approval_expire, approval_id):
            await doorbells.ring_approval(approval_id)
    await in_database(approvals_forget)


def overdue_sessions() -> list[UUID]:
    """Sessions that wait for a report that will not come."""
    active = CommandSession.objects.filter(IS_ACTIVE).filter(_is_overdue()).order_by()
    # Distinct: the join has a row for each command of the session.
    return list(active.values_list("id", flat=True).distinct())


def _is_overdue() -> Q:
    now = clock.now()
    since = clock.host_lease_now()
    is_away = Q(controller__lease_expires_at__isnull=True) | Q(
        controller__lease_expires_at__lt=since
    )
    start = Q(commands__type__in=outbox.START_TYPES, commands__settled_at__isnull=True)
    never_sent = Q(state=SessionState.PENDING) & start & Q(commands__expires_at__lt=now)
    # The host may have started the program. It is asked when it comes back, and the session is
    # overdue once the program's lifetime is over.
    never_answered = Q(state=SessionState.SENT)
    return never_sent | never_answered | (Q(state=SessionState.RUNNING) & is_away)


@transaction.atomic
def end_overdue(session_id: UUID) -> bool:
    """Ends the session if it is still overdue. Returns False if it is not.

    It is EXPIRED if no host was ever sent its start, and LOST if its lifetime ended unreported.
    """
    locked = CommandSession.objects.select_for_update(no_key=True, of=("self",))
    session = locked.filter(id=session_id).first()
    if session is None or not CommandSession.objects.filter(_is_overdue(), id=session_id).exists():
        return False
    if session.state == SessionState.PENDING:
        message = "the host did not take the command in time"
        end_session(
            session,
            SessionState.EXPIRED,
            actor=ACTOR,
            failure_code="EXPIRED",
            failure_message=message,
        )
        return True
    if (
        not clock.can_tell(conf.lease_seconds)
        or _latest_end(session) + timedelta(seconds=LIFETIME_SLACK_SECONDS) > clock.now()
    ):
        return False
    end_lost(session, actor=ACTOR, note="its lifetime ran out while the host was away")
    return True


def _latest_end(session: CommandSession) -> datetime:
    """The latest time at which the host may rightly end the session.

    The host's answer to the last pause of the lifetime may be lost with the connection.
    """
    expires_at = session.lifetime_clock.expires_at_latest(clock.now())
    # A program without a report of its start may have started as late as its START was valid.
    expires_at = expires_at or session.created_at + timedelta(
        seconds=START_TTL_SECONDS + session.lifetime_seconds
    )
    unsettled = ControllerCommand.objects.filter(
        session=session, type=lifetimes.COMMAND_TYPE, settled_at__isnull=True
    )
    if not unsettled.exists():
        return expires_at
    longest = timedelta(minutes=session.project.max_pause_minutes, seconds=session.lifetime_seconds)
    return max(expires_at, (session.started_at or session.created_at) + longest)


def idle_sessions() -> list[tuple[UUID, UUID]]:
    """(project, session) of background sessions that no caller asked for in a while."""
    return list(
        CommandSession.objects.filter(IS_ACTIVE)
        .filter(_is_idle())
        .order_by()
        .values_list("project_id", "id")[:SESSIONS_PER_SWEEP]
    )


def _is_idle() -> Q:
    since = clock.now() - timedelta(seconds=conf.background_idle_seconds)
    forgotten = Q(
        kind=CommandSession.Kind.BACKGROUND, state=SessionState.RUNNING, touched_at__lt=since
    )
    # A session whose end was asked for already is ending.
    return forgotten & Q(ended_by="")


@transaction.atomic
def end_idle(project_id: UUID, session_id: UUID) -> UUID | None:
    """Has an idle session ended. Returns the controller to ring, if there is one to ring."""
    # Every command locks the host before its session: the other order could wait for itself.
    hosts = Controller.objects.select_for_update(no_key=True, of=("self",)).order_by()
    list(hosts.filter(sessions__id=session_id).values_list("id"))
    if (
        not CommandSession.objects.select_for_update(no_key=True)
        .filter(_is_idle(), id=session_id)
        .exists()
    ):
        return None
    return terminate_session(project_id, session_id, ACTOR, ended_by="idle").to_ring


def oversized_sessions() -> list[tuple[UUID, int]]:
    """Sessions that keep more of a stream than they may, with the number of bytes they may keep.

    Only sessions that still get output, or did until lately, can be among them.
    """
    retained = Coalesce(
        F("retained_bytes"), Value(conf.output_retained_bytes), output_field=BigIntegerField()
    )
    rows = CommandSession.objects.order_by().annotate(
        retained=retained,
        excess=Greatest(
            F("stdout_next_offset") - F("stdout_first_offset"),
            F("stderr_next_offset") - F("stderr_first_offset"),
        )
        - F("retained"),
    )
    slack = Least(
        Value(output_log.TRIM_SLACK_BYTES),
        Greatest(Value(MAX_CHUNK_BYTES), F("retained")),
        output_field=BigIntegerField(),
    )
    large = rows.filter(excess__gt=slack).values_list("id", "retained")
    # Two statements: each has its index.
    growing = large.filter(IS_ACTIVE)[:SESSIONS_PER_SWEEP]
    grown = large.filter(ended_at__gt=clock.now() - RECENTLY)[:SESSIONS_PER_SWEEP]
    return [*growing, *grown]


def overfull_sessions() -> list[UUID]:
    """Sessions that have more events than are kept, among those that may still get some."""
    numbers = SessionEvent.objects.filter(session_id=OuterRef("id")).values("seq")
    rows = CommandSession.objects.order_by().annotate(
        kept=Subquery(numbers.order_by("-seq")[:1]) - Subquery(numbers.order_by("seq")[:1])
    )
    overfull = rows.filter(kept__gte=events.MAX_EVENTS).values_list("id", flat=True)
    growing = overfull.filter(IS_ACTIVE)[:SESSIONS_PER_SWEEP]
    grown = overfull.filter(ended_at__gt=clock.now() - RECENTLY)[:SESSIONS_PER_SWEEP]
    return [*growing, *grown]


ROUNDS: Final = Rounds("sweeper", _sweep_on_duty, lambda: conf.sweep_seconds)
