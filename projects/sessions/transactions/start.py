"""Start a session: the preamble of all four tool families, and its one transaction.

The transaction writes the session's row, its START into the outbox, and an audit row.
"""

from collections.abc import Mapping
from datetime import timedelta
from uuid import UUID, uuid4

from controller_client.protocol.limits import RING_BYTES, START_TTL_SECONDS
from controller_client.protocol.messages import NamedFile, RunCommand, StartInteractiveCmd
from projects.accounts.authentication import Caller
from projects.accounts.rate_limits import rate_take_ahead
from projects.audit.log import audit
from projects.conf import conf
from projects.errors.hosts import ControllerOffline
from projects.errors.limits import SessionLimitReached
from projects.models import CommandSession
from projects.policy import command_rules
from projects.policy.arguments import check_launch
from projects.policy.command_rules import AllowedStart
from projects.policy.launch import Launch
from projects.sessions import outbox, selectors
from projects.sessions.idempotency import Done, Request, request_for
from projects.sessions.selectors import SessionLimits
from projects.sessions.state import add_session
from projects.sessions.transactions import permits
from projects.sessions.transactions.acting import (
    Acted,
    actor_of,
    in_one_transaction,
    require_cleared,
)
from projects.sessions.transactions.returning import once_back
from projects.storage import clock
from projects.storage.access import in_shared_transaction

_KIND = CommandSession.Kind


async def launch_session(
    project_id: UUID,
    caller: Caller | None,
    launch: Launch,
    *,
    action: str,
    request_id: UUID | None,
    details: Mapping[str, object],
) -> Acted:
    """Check a launch and commit its session. The controller is still to be rung.

    A repeat under ``request_id`` must be the same ``action`` with the same command, host,
    directory, environment and ``details``; it finds the session of the first call.
    Raises what ``check_launch`` and ``start_session`` raise.
    """
    require_cleared(caller)
    check_launch(caller, launch)
    body = {
        "command": launch.command,
        "controller": launch.controller,
        "cwd": launch.cwd,
        "env": dict(launch.env),
        **details,
    }
    request = request_for(project_id, request_id, action, body)
    return await once_back(
        in_shared_transaction, start_session, project_id, caller, launch, request
    )


@in_one_transaction
def start_session(
    project_id: UUID,
    caller: Caller | None,
    launch: Launch,
    request: Request | None,
) -> Acted:
    """Commit a new session and its START.

    Raises ControllerOffline, SessionLimitReached, LifetimeTooLong, RateLimited, what
    ``selectors.controller_for`` raises and what ``Rules.judge`` raises.
    """
    # The lock comes first. A repeat that waits here for the first call then finds what that call
    # did, instead of finding its slot taken.
    limits = selectors.locked_session_limits_of(project_id)
    if request is not None and (earlier := request.earlier_start()) is not None:
        return Acted(session_id=earlier.session_id, is_new=False)
    _use_rate(caller)
    permits.use(caller)
    lifetime_seconds = _lifetime(launch, limits)
    allowed = command_rules.rules_of(project_id).judge(caller, launch)
    host = selectors.controller_for(project_id, launch.controller)
    permits.check_host(caller, host.id)
    if not selectors.is_online(host.lease_expires_at):
        raise ControllerOffline(host.name, host_id=host.id)
    now = clock.now()
    session = CommandSession(
        id=uuid4(),
        project_id=project_id,
        controller_id=host.id,
        slot=_free_slot(project_id, launch, limits),
        kind=launch.kind,
        io_mode=launch.io_mode,
        rows=launch.rows,
        cols=launch.cols,
        command=launch.command,
        cwd=launch.cwd or "",
        lifetime_seconds=lifetime_seconds,
        retained_bytes=launch.retained_bytes,
        started_by=actor_of(caller),
        created_at=now,
        touched_at=now,
    )
    seq = outbox.allocate_seq(host.id)
    add_session(session)
    to_ring = outbox.enqueue(
        controller_id=host.id,
        session_id=session.id,
        message=_start_message(launch, allowed, session, seq, permits.approved_files(caller)),
        expires_at=session.created_at + timedelta(seconds=START_TTL_SECONDS),
        token_id=None if caller is None else caller.token_id,
    )
    started = {"command": launch.command, "cwd": launch.cwd, "env": sorted(launch.env)}
    detail = {**started, **permits.of_caller(caller)}
    audit(actor_of(caller), "session.start", (project_id, host.id, session.id), detail)
    if request is not None:
        request.record(Done(session_id=session.id))
    return Acted(session_id=session.id, to_ring=to_ring)


def _start_message(
    launch: Launch,
    allowed: AllowedStart,
    session: CommandSession,
    seq: int,
    approved_files: list[NamedFile] | None,
) -> StartInteractiveCmd | RunCommand:
    """The START for the host. A one-shot has a message of its own, which has a result."""
    if launch.kind == _KIND.ONE_SHOT:
        return RunCommand(
            seq=seq,
            session_id=str(session.id),
            command=allowed.command,
            argv=allowed.argv,
            input=launch.stdin_data,
            cwd=launch.cwd,
            env=dict(launch.env),
            timeout_seconds=session.lifetime_seconds,
            ttl_seconds=START_TTL_SECONDS,
            limits=allowed.limits,
            rules=allowed.rules,
            approved_files=approved_files,
        )
    return StartInteractiveCmd(
        seq=seq,
        session_id=str(session.id),
        command=allowed.command,
        argv=allowed.argv,
        cwd=launch.cwd,
        env=dict(launch.env),
        io_mode=launch.io_mode,
        pipe_fallback=launch.pipe_fallback,
        rows=launch.rows,
        cols=launch.cols,
        lifetime_seconds=session.lifetime_seconds,
        # The host has to keep what the server cannot take at once, as long as it is to be kept.
        ring_bytes=max(RING_BYTES, launch.retained_bytes or 0),
        ttl_seconds=START_TTL_SECONDS,
        stdin=launch.stdin,
        stdin_data=launch.stdin_data,
        limits=allowed.limits,
        rules=allowed.rules,
        approved_files=approved_files,
    )


def _use_rate(caller: Caller | None) -> None:
    """Count the start against the rate of the caller's token. Raises RateLimited."""
    if caller is None or caller.token_id is None:
        return
    own = caller.starts_per_minute
    per_minute = conf.starts_per_minute if own is None else own
    rate_take_ahead(f"start {caller.token_id}", 1, per_minute, "starts with this API token")


def _lifetime(launch: Launch, limits: SessionLimits) -> float:
    """The lifetime in seconds that the project grants. Raises LifetimeTooLong."""
    if launch.lifetime_seconds is None or launch.kind == _KIND.INTERACTIVE:
        return limits.lifetime(launch.lifetime_seconds)
    return launch.lifetime_seconds


def _free_slot(project_id: UUID, launch: Launch, limits: SessionLimits) -> int:
    """The first free slot of this kind, from 1. Raises SessionLimitReached.

    A unique index of the database guards the slots: a start that loses a race is tried again.
    """
    limit = limits.max_active if launch.limit is None else launch.limit
    active = selectors.taken_slots(project_id, launch.kind)
    taken = {holder.slot for holder in active}
    for slot in range(1, limit + 1):
        if slot not in taken:
            return slot
    ids = [str(holder.session_id) for holder in active]
    raise SessionLimitReached(limit, ids, limits.project_name, kind=launch.kind.value)
