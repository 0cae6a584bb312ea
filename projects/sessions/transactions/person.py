"""A person types the secret that a program asks for: one transaction asks, one types."""

from collections.abc import Sequence
from typing import Final, NamedTuple
from uuid import UUID

from django.db import transaction

from projects.accounts.authentication import Caller
from projects.attention.events import Cause, attention_raise, attention_resolve
from projects.attention.noticing import prompt_key
from projects.audit.log import audit
from projects.errors.inputs import PromptGone
from projects.models import AttentionEvent, AttentionKind, CommandSession
from projects.policy.typed_input import Typing
from projects.sessions import selectors
from projects.sessions.idempotency import Done, Request
from projects.sessions.snapshot import Snapshot, session_snapshot
from projects.sessions.transactions import permits
from projects.sessions.transactions.acting import (
    Acted,
    actor_of,
    in_one_transaction,
    require_cleared,
)
from projects.sessions.transactions.input import send_input

ASKED_KIND: Final = "secret"
"""The kind of prompt at which a person is asked."""


class PersonAsked(NamedTuple):
    """A person is asked at the prompt that came after ``input_seq`` inputs.

    ``event_id`` is None if the program asks for no secret.
    """

    event_id: UUID | None
    input_seq: int
    from_offset: int


def asks_for_secret(now: Snapshot) -> bool:
    """True if the program waits for a secret."""
    is_newest = now.terminal_input_seq >= now.input_seq
    return now.is_waiting and is_newest and now.terminal_kind == ASKED_KIND


@in_one_transaction
def person_ask(
    project_id: UUID,
    session_id: UUID,
    caller: Caller | None,
    wanted: str,
    request: Request | None = None,
) -> PersonAsked:
    """Raise the event that asks a person for the secret of the prompt, once while the prompt stays.

    A repeat of its ``request`` waits on at the same prompt, asks again if that went and came back,
    and asks at no later one. Raises SessionNotFound, and ChangedSinceApproval for a prompt that is
    not the approved one.
    """
    require_cleared(caller)
    now = session_snapshot(project_id, session_id)
    earlier = None if request is None else request.earlier()
    from_offset = now.shown_offset if earlier is None else earlier.from_offset
    if earlier is None:
        permits.use(caller)
        permits.check_prompt(caller, session_id, now.input_seq + 1)
        if request is not None:
            done = Done(session_id=session_id, input_seq=now.input_seq, from_offset=from_offset)
            request.record(done)
    if not asks_for_secret(now):
        return PersonAsked(None, now.input_seq, from_offset)
    key = prompt_key(session_id, now.input_seq, now.terminal_offset)
    known = AttentionEvent.objects.filter(cause=key, wanted=wanted).first()
    if known is not None and known.resolved_at is None:
        return PersonAsked(known.id, now.input_seq, from_offset)
    event_id = None
    if earlier is None or (known is not None and earlier.input_seq == now.input_seq):
        session = selectors.session_of(project_id, session_id)
        event_id = _raise(session, caller, key, now.input_seq, wanted)
    return PersonAsked(event_id, now.input_seq, from_offset)


def _raise(
    session: CommandSession, caller: Caller | None, key: str, input_seq: int, wanted: str
) -> UUID | None:
    path = f"/sessions/{session.id}/secret/"
    cause = Cause(
        kind=AttentionKind.SECRET_WANTED,
        key=key,
        project_id=session.project_id,
        controller_id=session.controller_id,
        session_id=session.id,
        path=path,
        wanted=wanted,
        detail={"input_seq": input_seq, "asks_for": ASKED_KIND},
        is_asked=True,
    )
    event_id = attention_raise(cause)
    # The worker may have noticed the prompt before.
    AttentionEvent.objects.filter(cause=key).update(wanted=wanted, path=path)
    about = (session.project_id, session.controller_id, session.id)
    audit(actor_of(caller), "session.ask_person", about, {"wanted": wanted})
    return event_id


def person_type(
    project_id: UUID, session_id: UUID, caller: Caller, value: bytes, input_seq: int
) -> Acted:
    """Commit the secret that a person typed for the prompt after ``input_seq`` inputs.

    Raises PromptGone if something was typed since, and the errors of ``send_input``.
    """
    with transaction.atomic():
        acted = send_input(project_id, session_id, caller, Typing(by_person=value), None)
        if acted.input_seq != input_seq + 1:
            raise PromptGone
        for key in _open_prompts(session_id):
            attention_resolve(key, "answered", by=caller.label)
    return acted


def _open_prompts(session_id: UUID) -> Sequence[str]:
    rows = AttentionEvent.objects.filter(
        session_id=session_id, kind=AttentionKind.SECRET_WANTED, resolved_at__isnull=True
    )
    return list(rows.values_list("cause", flat=True))
