"""The keyboard of a session in the hands of an operator at a browser.

It is the take-over of ``control`` with three more rules. The operator types only while they have
the keyboard. Another operator asks for it, or insists and takes it. And an operator who types
nothing for long, or whose browser is gone, hands the keyboard back without doing so: the row of
``HeldKeyboard`` says when the browser was last heard, and the sweeper looks at these rows.
"""

from datetime import datetime, timedelta
from typing import Final, NamedTuple
from uuid import UUID

from django.db import transaction
from django.db.models import Q

from projects.accounts.authentication import Caller
from projects.conf import conf
from projects.errors.calls import InvalidArgument
from projects.errors.sessions import KeyboardNotHeld, SessionEnded, SessionTakenOver
from projects.models import CommandSession, HeldKeyboard
from projects.policy.typed_input import Typing
from projects.sessions import selectors
from projects.sessions.idempotency import Request
from projects.sessions.lifetimes import Told
from projects.sessions.transactions.acting import Acted, actor_of
from projects.sessions.transactions.control import hand_back, take_over
from projects.sessions.transactions.input import send_input
from projects.storage import clock

GONE_SECONDS: Final = 60.0
"""A browser that was not heard for so long is gone, and its keyboard goes back."""
HANDED_BACK_PER_SWEEP: Final = 100


class Abandoned(NamedTuple):
    """A keyboard that goes back by itself, and the note for the callers that says why."""

    project_id: UUID
    session_id: UUID
    operator: str
    note: str
    seen_at: datetime
    typed_at: datetime


@transaction.atomic
def keyboard_take(
    project_id: UUID, session_id: UUID, operator: str, *, is_insisting: bool
) -> Told | None:
    """Give the keyboard to an operator at a browser, who may have it already.

    An operator who insists takes it from another operator. Returns the host to be rung, if there is
    one. Raises SessionNotFound, SessionEnded, SessionTakenOver or InvalidArgument.
    """
    session = selectors.session_of(project_id, session_id)
    if session.kind != CommandSession.Kind.INTERACTIVE:
        raise InvalidArgument(["session_id: only an interactive session can be taken over"])
    if session.taken_over_by not in ("", operator) and not is_insisting:
        raise SessionTakenOver(session_id, session.taken_over_by)
    told = take_over(project_id, session_id, operator)
    now = clock.now()
    HeldKeyboard.objects.create(session=session, operator=operator, seen_at=now, typed_at=now)
    return told


@transaction.atomic
def keyboard_release(project_id: UUID, session_id: UUID, operator: str, note: str) -> Told | None:
    """Hand the keyboard back, as ``hand_back`` does. Raises KeyboardNotHeld, too."""
    _require_keyboard(project_id, session_id, operator)
    return hand_back(project_id, session_id, operator, note)


def keyboard_type(
    project_id: UUID,
    session_id: UUID,
    caller: Caller | None,
    typing: Typing,
    request: Request | None,
) -> Acted:
    """Commit one input of the operator who has the keyboard, at most once for its ``request``.

    Raises KeyboardNotHeld and the errors of ``send_input``.
    """
    with transaction.atomic():
        acted = send_input(project_id, session_id, caller, typing, request)
        if acted.is_new:
            # The input has locked the row of the session, so nobody takes the keyboard meanwhile.
            _require_keyboard(project_id, session_id, actor_of(caller))
    return acted


def keyboard_keep(session_id: UUID, operator: str, *, has_typed: bool) -> bool:
    """Note that the operator's browser is there. Returns False if it has no keyboard any more."""
    now = clock.now()
    seen = {"seen_at": now, "typed_at": now} if has_typed else {"seen_at": now}
    held = HeldKeyboard.objects.filter(session_id=session_id, operator=operator)
    return bool(held.update(**seen))


def keyboard_ask(project_id: UUID, session_id: UUID, operator: str) -> None:
    """Note that another operator wants the keyboard, for everybody who looks to see.

    The note goes with the keyboard. Raises KeyboardNotHeld if no other browser has it, and
    SessionNotFound.
    """
    others = HeldKeyboard.objects.filter(session_id=session_id).exclude(operator=operator)
    if not others.update(asked_by=operator):
        session = selectors.session_of(project_id, session_id)
        raise KeyboardNotHeld(session_id, session.taken_over_by)


def abandoned_keyboards() -> list[Abandoned]:
    """The keyboards that nobody has used for too long, or whose browser is gone.

    After a jump of the clock, and after the start of this process, that takes as long again: until
    then no browser may have been able to say that it is there.
    """
    now = clock.now()
    idle = timedelta(minutes=conf.keyboard_idle_minutes)
    gone_since, idle_since = now - timedelta(seconds=GONE_SECONDS), now - idle
    is_left = Q(pk__in=())
    if clock.can_tell(GONE_SECONDS):
        is_left |= Q(seen_at__lt=gone_since)
    if clock.can_tell(idle.total_seconds()):
        is_left |= Q(typed_at__lt=idle_since)
    rows = HeldKeyboard.objects.filter(is_left)
    return [
        abandoned(
            row,
            "handed back by itself: "
            + ("the browser was gone" if row.seen_at < gone_since else "nothing was typed"),
        )
        for row in rows.select_related("session")[:HANDED_BACK_PER_SWEEP]
    ]


def abandoned(row: HeldKeyboard, note: str) -> Abandoned:
    """The keyboard of the row, as it is now, with the note that says why it goes back."""
    session = row.session
    return Abandoned(session.project_id, session.id, row.operator, note, row.seen_at, row.typed_at)


def keyboard_expire(left: Abandoned) -> Told | None:
    """Hand an abandoned keyboard back, unless its browser came back or somebody else has it."""
    as_seen = HeldKeyboard.objects.filter(
        session_id=left.session_id,
        operator=left.operator,
        seen_at=left.seen_at,
        typed_at=left.typed_at,
    )
    try:
        with transaction.atomic():
            # This locks the row until the keyboard is handed back. Without the row, the keyboard
            # was given back or taken meanwhile, perhaps by the same operator.
            if not as_seen.update(seen_at=left.seen_at):
                return None
            return keyboard_release(left.project_id, left.session_id, left.operator, left.note)
    except (KeyboardNotHeld, SessionEnded, SessionTakenOver):
        # Taken by another operator, who has a row of their own, or of no use to anybody.
        as_seen.delete()
        return None


def _require_keyboard(project_id: UUID, session_id: UUID, operator: str) -> None:
    """Raises KeyboardNotHeld unless the operator has the keyboard; SessionNotFound."""
    session = selectors.session_of(project_id, session_id)
    if session.taken_over_by != operator:
        raise KeyboardNotHeld(session_id, session.taken_over_by)
