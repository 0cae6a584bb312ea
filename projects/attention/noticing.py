"""Raise and resolve the events that nobody reports: prompts that stay, and hosts that are away.

These events follow from rows alone, so no turn and no connection pays for them. The worker compares
the open events with the rows about once a second, and only for projects that want such events. A
prompt is named by the inputs typed before and by its offset, so a prompt that the host repeats is
the event that is there, and one that comes back at its place opens that event again. A shell that
waits for a command is at rest: it wants nobody.

Rows are read page by page to the last one: however many prompts are known already, they keep no new
one from being noticed.
"""

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from itertools import chain, islice
from typing import Final, NamedTuple
from uuid import UUID

from django.db import transaction
from django.db.models import QuerySet

from controller_client.protocol.session_state import ACTIVE_STATES, SessionState
from projects.attention.events import Cause, attention_raise, attention_resolve
from projects.models import (
    AttentionEvent,
    AttentionKind,
    CommandSession,
    Controller,
    Project,
)
from projects.storage import clock
from projects.storage.columns import as_parameter
from projects.storage.rows import fetch_rows

Wanted = Mapping[UUID, Mapping[str, float]]
"""What each project wants: seconds by kind."""

PROMPTS: Final = (AttentionKind.SECRET_WANTED, AttentionKind.INPUT_WANTED)
MOST_AT_ONCE: Final = 500
_ACTIVE: Final = ", ".join(repr(state.value) for state in sorted(ACTIVE_STATES))

_WAITING: Final = f"""
SELECT s.id, s.project_id, s.controller_id, s.terminal_kind, s.terminal_offset, s.input_seq,
    s.started_at,
    (SELECT created_at FROM projects_outputchunk o WHERE o.session_id = s.id AND
        o.stream = 'stdout' ORDER BY o."offset" DESC LIMIT 1),
    (SELECT created_at FROM projects_sessionevent e WHERE e.session_id = s.id AND
        e.kind IN ('prompt', 'input', 'hand_back') ORDER BY e.seq DESC LIMIT 1)
FROM projects_commandsession s
WHERE s.state IN ({_ACTIVE}) AND s.state = '{SessionState.RUNNING.value}'
    AND s.terminal_state = 'awaiting_input' AND s.terminal_kind <> 'shell' AND s.taken_over_by = ''
    AND s.terminal_offset >= s.stdout_next_offset AND s.terminal_input_seq >= s.input_seq
    AND s.project_id IN ({{places}}) AND s.id > %s
ORDER BY s.id LIMIT {{limit}}
"""  # noqa: S608 - words of our own


class Waiting(NamedTuple):
    """A program that waits for input. The order is that of the statement."""

    session_id: UUID
    project_id: UUID
    controller_id: UUID
    terminal_kind: str
    offset: int
    input_seq: int
    started_at: datetime | None
    printed_at: datetime | None
    asked_at: datetime | None

    @property
    def kind(self) -> AttentionKind:
        """The kind of event that the prompt is."""
        return PROMPTS[0] if self.terminal_kind == "secret" else PROMPTS[1]

    @property
    def cause(self) -> Cause:
        """The prompt as a cause."""
        return Cause(
            kind=self.kind,
            key=prompt_key(self.session_id, self.input_seq, self.offset),
            project_id=self.project_id,
            controller_id=self.controller_id,
            session_id=self.session_id,
            detail={"input_seq": self.input_seq, "asks_for": self.terminal_kind},
        )

    def is_over(self, seconds: float, now: datetime) -> bool:
        """True if the program has waited for so long."""
        # A time to come was written before the clock was put back, and says nothing.
        latest = now + timedelta(seconds=clock.JUMP_SECONDS)
        known = (self.started_at, self.printed_at, self.asked_at)
        times = [at for at in known if at is not None and at <= latest]
        return not times or max(times) + timedelta(seconds=seconds) <= now


def prompt_key(session_id: UUID, input_seq: int, offset: int) -> str:
    """The key of a prompt that came after so many inputs and bytes of output."""
    return f"prompt:{session_id}:{input_seq}:{offset}"


def projects_that_want() -> Wanted:
    """The projects that want events at all."""
    rows = Project.objects.filter(attention_seconds__isnull=False)
    return {key: wanted or {} for key, wanted in rows.values_list("id", "attention_seconds")}


# ---- raise ---------------------------------------------------------------------------------------


def causes_to_raise(wanted: Wanted) -> list[Cause]:
    """The prompts that have stayed, and the hosts that are away, without an open event.

    At most MOST_AT_ONCE: the others are found once these have their events.
    """
    causes = chain(_prompts(wanted), _hosts_away(wanted))
    new: list[Cause] = []
    while len(new) < MOST_AT_ONCE and (some := list(islice(causes, MOST_AT_ONCE))):
        keys = [cause.key for cause in some]
        is_open = AttentionEvent.objects.filter(cause__in=keys, resolved_at__isnull=True)
        known = set(is_open.values_list("cause", flat=True))
        new += [cause for cause in some if cause.key not in known]
    return new[:MOST_AT_ONCE]


def _prompts(wanted: Wanted) -> Iterator[Cause]:
    projects = [key for key, kinds in wanted.items() if not kinds.keys().isdisjoint(PROMPTS)]
    if not projects:
        return
    now = clock.now()
    asked = _open_prompts()
    for waiting in _all_waiting(projects):
        seconds = wanted[waiting.project_id].get(waiting.kind)
        # A program that draws its prompt anew meanwhile asks the same.
        is_known = (waiting.session_id, waiting.kind, waiting.input_seq) in asked
        if seconds is not None and not is_known and waiting.is_over(seconds, now):
            yield waiting.cause


def _all_waiting(projects: Sequence[UUID]) -> Iterator[Waiting]:
    places = ", ".join(["%s"] * len(projects))
    statement = _WAITING.format(places=places, limit=MOST_AT_ONCE)
    after: UUID | None = UUID(int=0)
    while after is not None:
        page = fetch_rows(Waiting, statement, [as_parameter(key) for key in (*projects, after)])
        yield from page
        after = page[-1].session_id if len(page) == MOST_AT_ONCE else None


def _open_prompts() -> set[tuple[UUID | None, str, int]]:
    rows = AttentionEvent.objects.filter(resolved_at__isnull=True, kind__in=PROMPTS).order_by()
    return {
        (session_id, kind, detail["input_seq"])
        for session_id, kind, detail in rows.values_list("session_id", "kind", "detail")
    }


def _hosts_away(wanted: Wanted) -> Iterator[Cause]:
    projects = [key for key, kinds in wanted.items() if AttentionKind.HOST_AWAY in kinds]
    if not projects:
        return
    away = Controller.objects.filter(
        project_id__in=projects,
        revoked_at__isnull=True,
        lease_expires_at__lte=clock.host_lease_now(),
    )
    rows = away.values_list("id", "project_id", "epoch", "lease_expires_at")
    for controller_id, project_id, epoch, since in rows:
        yield Cause(
            kind=AttentionKind.HOST_AWAY,
            # Each connection has an epoch of its own. One that went on after the server could not
            # renew its lease, and ends later, opens its event again.
            key=f"host_away:{controller_id}:{epoch}",
            project_id=project_id,
            controller_id=controller_id,
            detail={"since": str(since)},
        )


# ---- resolve -------------------------------------------------------------------------------------


def causes_that_ended() -> list[tuple[str, str]]:
    """The open events whose cause is over: their keys, each with the word for the end."""
    return [(event.cause, end) for event in _all_open() if (end := _end_of(event))]


def _open_to_end() -> QuerySet[AttentionEvent]:
    """The open events that the worker may end. Whoever answers an approval ends its event."""
    rows = AttentionEvent.objects.filter(resolved_at__isnull=True)
    return rows.exclude(kind=AttentionKind.APPROVAL_WANTED)


def _all_open() -> Iterator[AttentionEvent]:
    rows = _open_to_end().order_by("pk").select_related("session", "controller")
    page = list(rows[:MOST_AT_ONCE])
    while page:
        yield from page
        page = list(rows.filter(pk__gt=page[-1].pk)[:MOST_AT_ONCE])


def _end_of(event: AttentionEvent) -> str:
    """The word for the end of the cause; empty while the cause lasts."""
    if event.session is not None:
        return _end_in(event.session, event)
    return "" if event.controller is None else _end_at(event.controller, event)


def _end_at(host: Controller, event: AttentionEvent) -> str:
    if host.revoked_at is not None:
        return "revoked"
    if event.kind == AttentionKind.HOST_AWAY:
        lease = host.lease_expires_at
        return "back" if lease and lease > clock.host_lease_now() else ""
    return "dismissed" if host.alarmed_at is None else ""


def _end_in(session: CommandSession, event: AttentionEvent) -> str:
    if SessionState(session.state).is_final:
        return "ended"
    if event.kind == AttentionKind.TAKEN_OVER:
        return "" if session.taken_over_by else "handed_back"
    if event.kind not in PROMPTS:
        return ""
    if session.input_seq > event.detail["input_seq"]:
        return "answered"
    return "" if session.terminal_state == "awaiting_input" else "went_on"


# ---- look and write ------------------------------------------------------------------------------


def has_news(wanted: Wanted) -> bool:
    """True if an event is to be raised or has ended, by the rows of now."""
    return bool(_ended() or (wanted and causes_to_raise(wanted)))


def _ended() -> list[tuple[str, str]]:
    return causes_that_ended() if _open_to_end().exists() else []


@transaction.atomic
def note_news(wanted: Wanted) -> None:
    """Raise and end the events, by the rows as this transaction sees them."""
    for key, resolution in _ended():
        attention_resolve(key, resolution)
    for cause in causes_to_raise(wanted) if wanted else ():
        attention_raise(cause)
