"""The transactions behind every action on a session: start, type, terminate, resize.

Each is one transaction: checks, the session's row, the command in the outbox, the audit row. They run in a database thread and leave
ringing and waiting to the services, which all command families share these with.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any, Final
from uuid import UUID, uuid4

import msgspec
from django.db import IntegrityError, connection, transaction

from controller_client.protocol.limits import START_TTL_SECONDS, TERMINATE_GRACE_SECONDS
from controller_client.protocol.messages import Resize, RunCommand, SendInput, StartInteractiveCmd, TerminateCmd
from controller_client.protocol.session_state import SessionState
from projects import clock, command_rules, dispatch, secret_store, selectors
from projects.audit_log import audit
from projects.authentication import Caller
from projects.conf import conf
from projects.direct_rows import row_insert
from projects.errors import ControllerOffline, SessionEnded, SessionLimitReached, SessionNotFound, SessionTakenOver, StorageUnavailable
from projects.idempotency import Done, Request
from projects.models import CommandSession, ControllerCommand
from projects.rate_limits import rate_take_ahead

SYSTEM: Final = "system"
_RACES: Final = 5
_TOUCH_GRAIN: Final = timedelta(minutes=1)
_KIND = CommandSession.Kind


@dataclass(frozen=True, kw_only=True)
class NewSession:
    """What is to be started. ``build`` makes its first command, given ``seq`` and ``session_id``; ``lifetime_seconds`` is in there too.

    ``limit``: how many of its ``kind`` the project may have at once, None for any number; of interactive ones the project itself says.
    """

    build: Callable[..., StartInteractiveCmd | RunCommand]
    lifetime_seconds: float
    kind: CommandSession.Kind = _KIND.INTERACTIVE
    limit: int | None = None
    retained_bytes: int | None = None


@dataclass(frozen=True, slots=True)
class Acted:
    """What an action's transaction did. ``controller_id`` is to be rung; None: nothing was put into its outbox."""

    session_id: UUID
    controller_id: UUID | None
    from_offset: int = 0
    input_seq: int = 0
    command_seq: int | None = None
    is_new: bool = True
    is_withdrawn: bool = False


def actor_of(caller: Caller | None) -> str:
    """How audit rows name who acts."""
    return SYSTEM if caller is None else caller.label


def _count(caller: Caller | None, kind: str, amount: int) -> None:
    """Uses the rate of the caller's token. Raises RateLimited, and nothing was used."""
    if caller is None or caller.token_id is None:
        return
    if kind == "start":
        own, general, what = caller.starts_per_minute, conf.starts_per_minute, "starts"
    else:
        own, general, what = caller.input_bytes_per_minute, conf.input_bytes_per_minute, "bytes of input"
    rate_take_ahead(f"{kind} {caller.token_id}", amount, general if own is None else own, f"{what} with this API token")


# ---- start -------------------------------------------------------------------------------------------------------------


def start_session(project_id: UUID, caller: Caller | None, controller: str | None, new: NewSession, request: Request | None) -> Acted:
    """Commits a new session and its START. Raises ControllerOffline, SessionLimitReached and what ``controller_for`` raises."""
    for _ in range(_RACES):
        try:
            with transaction.atomic():
                return _start_once(project_id, caller, controller, new, request)
        except IntegrityError:
            # Somebody took the slot or the request id between our read and our write: look again.
            continue
    raise StorageUnavailable


def _start_once(project_id: UUID, caller: Caller | None, controller: str | None, new: NewSession, request: Request | None) -> Acted:
    # First of all: a repeated start that waits for the first one finds what that did, and not that its place is taken.
    limit = _limit_of(project_id, new)
    if request is not None and (earlier := request.earlier()) is not None:
        return Acted(earlier.session_id, None, is_new=False)
    _count(caller, "start", 1)
    checked = command_rules.rules_of(project_id).checked_start(caller, new.build(seq=0, session_id=""))
    host = selectors.controller_for(project_id, controller)
    if not selectors.is_online(host.lease_expires_at):
        raise ControllerOffline(host.name)
    slot = _free_slot(project_id, new.kind, limit)
    session_id, now = uuid4(), clock.now()
    seq, _, _ = dispatch.allocate_seq(host.id)
    start = new.build(seq=seq, session_id=str(session_id))
    row_insert(
        _session_row(new, start, id=session_id, project_id=project_id, controller_id=host.id, slot=slot, now=now, by=actor_of(caller))
    )
    message = msgspec.structs.replace(checked, seq=seq, session_id=str(session_id))
    dispatch.enqueue(
        controller_id=host.id,
        session_id=session_id,
        message=message,
        expires_at=now + timedelta(seconds=START_TTL_SECONDS),
        token_id=None if caller is None else caller.token_id,
    )
    detail = {"command": start.command, "cwd": start.cwd, "env": sorted(start.env)}
    audit(actor_of(caller), "session.start", (project_id, host.id, session_id), detail)
    if request is not None:
        request.record(Done(session_id, None, 0))
    return Acted(session_id, host.id)


def _session_row(new: NewSession, start: StartInteractiveCmd | RunCommand, *, now: datetime, by: str, **ids: Any) -> CommandSession:
    terminal = {} if isinstance(start, RunCommand) else {"rows": start.rows, "cols": start.cols, "io_mode": start.io_mode}
    return CommandSession(
        **{
            "io_mode": CommandSession.IoModeChoice.PIPE,
            **terminal,
            **ids,
            "kind": new.kind,
            "command": start.command or "",
            "cwd": start.cwd or "",
            "lifetime_seconds": new.lifetime_seconds,
            "retained_bytes": new.retained_bytes,
            "started_by": by,
            "created_at": now,
        }
    )


def _limit_of(project_id: UUID, new: NewSession) -> int | None:
    """How many of this kind there may be at once. Where there is a limit, starts come one after the other from here to their commit."""
    if new.kind != _KIND.INTERACTIVE and new.limit is None:
        return None
    allowed = selectors.locked_session_limit_of(project_id)
    return allowed if new.kind == _KIND.INTERACTIVE else new.limit


def _free_slot(project_id: UUID, kind: CommandSession.Kind, limit: int | None) -> int | None:
    """The first free place of this kind, by the database's own constraint; None where there is no limit. Raises SessionLimitReached."""
    if limit is None:
        return None
    active = selectors.sessions_with_slot(project_id, kind)
    taken = {slot for _, slot in active}
    for slot in range(1, limit + 1):
        if slot not in taken:
            return slot
    raise SessionLimitReached(limit, [str(session_id) for session_id, _ in active], kind=kind.value)


# ---- act on a session --------------------------------------------------------------------------------------------------

# Statements that run in every turn are written out: the ORM takes several times as long to build them as the database to run them.
# One finds the session's controller, locks it and numbers the command; the next numbers the input, only while the session lives.
_NUMBER_COMMAND = """
UPDATE projects_controller SET last_command_seq = last_command_seq + 1
WHERE id = (SELECT controller_id FROM projects_commandsession WHERE id = %s AND project_id = %s)
RETURNING id, last_command_seq, name, lease_expires_at
"""
_NUMBER_INPUT = f"""
UPDATE projects_commandsession SET input_seq = input_seq + 1, touched_at = %s
WHERE id = %s AND state IN ({", ".join("%s" for _ in selectors.ACTIVE)})
RETURNING input_seq, shown_offset, terminal_kind, command, taken_over_by
"""  # noqa: S608 - placeholders only


def send_input(
    project_id: UUID, session_id: UUID, caller: Caller | None, build: Any, request: Request | None, *, secret: str | None = None
) -> Acted:
    """Commits the SEND_INPUT that ``build`` makes of its numbers, with the value of the ``secret`` named and the Enter after it.

    Raises SessionNotFound, SessionEnded, ControllerOffline or SecretNotFound.
    """
    for _ in range(_RACES):
        try:
            with transaction.atomic():
                return _send_input_once(project_id, session_id, caller, build, request, secret=secret)
        except IntegrityError:
            continue
    raise StorageUnavailable


def _send_input_once(
    project_id: UUID, session_id: UUID, caller: Caller | None, build: Any, request: Request | None, *, secret: str | None
) -> Acted:
    if request is not None and (earlier := request.earlier()) is not None:
        return Acted(session_id, None, earlier.from_offset, earlier.input_seq or 0, earlier.command_seq, is_new=False)
    controller_id, seq = _number_command(project_id, session_id)
    with connection.cursor() as cursor:
        cursor.execute(_NUMBER_INPUT, [dispatch.time_as_parameter(clock.now()), dispatch.as_parameter(session_id), *selectors.ACTIVE])
        row = cursor.fetchone()
    if row is None:
        raise SessionEnded(session_id, selectors.session_of(project_id, session_id).state)
    input_seq, from_offset, terminal_kind, command, operator = row
    if operator and operator != actor_of(caller):
        raise SessionTakenOver(session_id, operator)
    message: SendInput = build(seq=seq, input_seq=input_seq)
    if secret is not None:
        opened = secret_store.secret_open(project_id, secret, controller_id=controller_id, command=command)
        message = msgspec.structs.replace(message, secret=opened.value + b"\n", may_echo=opened.may_echo)
    rules = command_rules.rules_of(project_id)
    if not rules.commands.is_open and command_rules.takes_lines(command, terminal_kind):
        rules.check_typed(message, is_hidden=terminal_kind == "secret")
    _count(caller, "input", len(message.data) + len(message.keys))
    token_id = None if caller is None else caller.token_id
    dispatch.enqueue(controller_id=controller_id, session_id=session_id, message=message, token_id=token_id)
    detail = _input_detail(message, is_hidden=terminal_kind == "secret", secret=secret)
    audit(actor_of(caller), "session.input", (project_id, controller_id, session_id), detail)
    if request is not None:
        request.record(Done(session_id, input_seq, from_offset, seq))
    return Acted(session_id, controller_id, from_offset, input_seq, seq)


def _input_detail(message: SendInput, *, is_hidden: bool, secret: str | None) -> dict[str, Any]:
    """What the audit row says of an input: never its text, nor its exact length."""
    if secret is not None:
        return {"input_seq": message.input_seq, "secret": secret}
    size = len(message.data)
    bucket = next(limit for limit in (0, 16, 256, 4096, 65_536) if size <= limit)
    if is_hidden:
        return {"input_seq": message.input_seq, "typed": f"(hidden input, at most {max(16, bucket)} keys)"}
    return {"input_seq": message.input_seq, "at_most_bytes": bucket, "keys": len(message.keys), "eof": message.eof}


def _number_command(project_id: UUID, session_id: UUID, *, may_be_offline: bool = False) -> tuple[UUID, int]:
    """(controller id, seq) for a command to the session's controller. Raises SessionNotFound or ControllerOffline."""
    with connection.cursor() as cursor:
        cursor.execute(_NUMBER_COMMAND, [dispatch.as_parameter(session_id), dispatch.as_parameter(project_id)])
        row = cursor.fetchone()
    if row is None:
        raise SessionNotFound(session_id)
    if not may_be_offline and not selectors.is_online(dispatch.as_time(row[3])):
        raise ControllerOffline(row[2])
    return UUID(str(row[0])), row[1]


def terminate_session(
    project_id: UUID,
    session_id: UUID,
    actor: str,
    *,
    ended_by: str | None = None,
    signal_name: str = "SIGTERM",
    is_escalated: bool = True,
    request: Request | None = None,
) -> Acted:
    """Commits a TERMINATE_CMD; ``is_escalated``: what the signal leaves alive is killed after a grace. Nothing, for a session that is over.

    ``ended_by`` is put on record in place of ``actor``. Raises SessionNotFound.
    """
    for _ in range(_RACES):
        try:
            with transaction.atomic():
                return _terminate_once((project_id, session_id), actor, ended_by or actor, (signal_name, is_escalated), request)
        except IntegrityError:
            continue
    raise StorageUnavailable


def _terminate_once(about: tuple[UUID, UUID], actor: str, ended_by: str, how: tuple[str, bool], request: Request | None) -> Acted:
    (project_id, session_id), (signal_name, is_escalated) = about, how
    if request is not None and (earlier := request.earlier()) is not None:
        return Acted(session_id, None, earlier.from_offset, command_seq=earlier.command_seq, is_new=False)
    session = selectors.session_of(project_id, session_id)
    over = Acted(session_id, None, session.shown_offset, session.input_seq, is_new=False)
    if SessionState(session.state).is_final:
        return over
    controller_id = session.controller_id
    audited = (project_id, controller_id, session_id)
    if is_escalated and _withdraw_start(session_id, ended_by):
        audit(actor, "session.terminate", audited, {"withdrawn": True})
        return replace(over, is_withdrawn=True)
    # Allowed while the host is away: the command waits for it in the outbox.
    _, seq = _number_command(project_id, session_id, may_be_offline=True)
    CommandSession.objects.filter(id=session_id, state__in=selectors.ACTIVE).update(ended_by=ended_by)
    message = TerminateCmd(
        seq=seq, session_id=str(session_id), signal=signal_name, escalate=is_escalated, grace_seconds=TERMINATE_GRACE_SECONDS
    )
    dispatch.enqueue(controller_id=controller_id, session_id=session_id, message=message)
    detail = {} if is_escalated else {"signal": signal_name}
    audit(actor, "session.terminate", audited, detail if ended_by == actor else {**detail, "reason": ended_by})
    if request is not None:
        request.record(Done(session_id, None, session.shown_offset, seq))
    return Acted(session_id, controller_id, session.shown_offset, session.input_seq, command_seq=seq)


def _withdraw_start(session_id: UUID, actor: str) -> bool:
    """Takes an unsent START out of the outbox, and the program never begins."""
    now = clock.now()
    unsent = ControllerCommand.objects.filter(session_id=session_id, sent_epoch__isnull=True, settled_at__isnull=True)
    if not unsent.filter(type__in=dispatch.START_TYPES).update(settled_at=now, body=None, failure_code="WITHDRAWN"):
        return False
    unsent.update(settled_at=now, body=None, failure_code="SESSION_ENDED")
    CommandSession.objects.filter(id=session_id).update(
        state=SessionState.TERMINATED.value, ended_at=now, end_reason="terminated", ended_by=actor
    )
    return True


@transaction.atomic
def resize_session(project_id: UUID, session_id: UUID, caller: Caller | None, size: tuple[int, int], request: Request | None) -> Acted:
    """Commits a RESIZE to ``size`` (rows, columns). Raises SessionNotFound, SessionEnded or ControllerOffline."""
    rows, cols = size
    if request is not None and (earlier := request.earlier()) is not None:
        return Acted(session_id, None, earlier.from_offset, is_new=False)
    controller_id, seq = _number_command(project_id, session_id)
    resized = CommandSession.objects.filter(id=session_id, state__in=selectors.ACTIVE).update(rows=rows, cols=cols)
    session = selectors.session_of(project_id, session_id)
    if not resized:
        raise SessionEnded(session_id, session.state)
    dispatch.enqueue(
        controller_id=controller_id, session_id=session_id, message=Resize(seq=seq, session_id=str(session_id), rows=rows, cols=cols)
    )
    audit(actor_of(caller), "session.resize", (project_id, controller_id, session_id), {"rows": rows, "cols": cols})
    if request is not None:
        request.record(Done(session_id, None, session.stdout_next_offset))
    return Acted(session_id, controller_id, session.stdout_next_offset, command_seq=seq)


def touch(session_id: UUID, touched_at: datetime) -> None:
    """A caller has to do with a session, so it is not idle. Noted to a minute only, so that polling writes nothing."""
    now = clock.now()
    if now - touched_at > min(_TOUCH_GRAIN, timedelta(seconds=conf.background_idle_seconds / 4)):
        CommandSession.objects.filter(id=session_id, state__in=selectors.ACTIVE).update(touched_at=now)


# ---- takeover ----------------------------------------------------------------------------------------------------------


@transaction.atomic
def take_over(project_id: UUID, session_id: UUID, operator: str) -> None:
    """From now on only ``operator`` may type. Taking it from another operator is allowed. Raises SessionNotFound or SessionEnded."""
    _set_operator(project_id, session_id, taken_over_by=operator)
    audit(operator, "session.take_over", (project_id, None, session_id))


@transaction.atomic
def hand_back(project_id: UUID, session_id: UUID, operator: str, note: str) -> None:
    """Callers may type again, and are told ``note``. Raises SessionNotFound or SessionEnded."""
    _set_operator(project_id, session_id, taken_over_by="", handback_note=f"{operator}: {note}" if note else f"{operator} typed here")
    audit(operator, "session.hand_back", (project_id, None, session_id))


def _set_operator(project_id: UUID, session_id: UUID, **changes: str) -> None:
    session = selectors.session_of(project_id, session_id)
    if not CommandSession.objects.filter(id=session_id, state__in=selectors.ACTIVE).update(**changes):
        raise SessionEnded(session_id, session.state)
