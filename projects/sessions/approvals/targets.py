"""The host and the session that a call goes to, for the person who has to approve it."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final
from uuid import UUID

from projects.accounts.authentication import Caller
from projects.errors.sessions import SessionNotFound
from projects.models import CommandSession, Controller, ControllerCommand, Monitor
from projects.policy.call_risk import MONITORS, Standing
from projects.sessions.outbox import START_TYPES
from projects.sessions.transactions.permits import prompt_shown

_HANDLES: Final = ("session_id", "sessionId")


@dataclass(frozen=True, slots=True)
class Target:
    """The host, the session, and the other sessions of the caller that are alive meanwhile.

    ``host`` is a controller's name; empty if the call does not say which. For a call about a
    monitor ``session_command`` is its file.
    """

    controller_id: UUID | None = None
    host: str = ""
    session_id: UUID | None = None
    session_command: str = ""
    input_seq: int | None = None
    prompt: str = ""
    live_programs: int = 0


@dataclass(frozen=True, slots=True)
class Found:
    """The target of a call, its session if it has one, and what that says of the call's risk."""

    target: Target
    session: CommandSession | None
    standing: Standing

    @property
    def asks_for_secret(self) -> bool:
        """True if what is typed may be a secret."""
        return self.session is not None and self.session.terminal_kind == "secret"


def found_target(
    caller: Caller, tool: str, arguments: Mapping[str, Any], named_host: str = ""
) -> Found:
    """Finds the target of a call. ``named_host`` is the host of a start that names none.

    Raises SessionNotFound for a session that the project does not have.
    """
    project_id = caller.project_id
    handle = _handle(arguments)
    if tool in MONITORS:
        return Found(_of_monitor(project_id, handle, arguments), None, Standing())
    live = CommandSession.objects.filter(
        project_id=project_id, started_by=caller.label, ended_at__isnull=True
    )
    if not handle:
        name = str(arguments.get("controller") or named_host)
        host_id, host = _host(project_id, name)
        return Found(Target(host_id, host, live_programs=live.count()), None, Standing())
    session = _session(project_id, handle)
    others = live.exclude(id=session.id).count()
    standing = Standing(is_own=_is_own(session, caller))
    return Found(_of_session(session, others), session, standing)


def asks_for_secret(project_id: UUID, arguments: Mapping[str, Any]) -> bool:
    """True if the session that the arguments name asks for a secret now."""
    try:
        session = _session(project_id, _handle(arguments))
    except SessionNotFound:
        return False
    return Found(Target(), session, Standing()).asks_for_secret


def _handle(arguments: Mapping[str, Any]) -> str:
    """The session that arguments name; empty if they name none."""
    return next((str(arguments[name]) for name in _HANDLES if arguments.get(name)), "")


def _is_own(session: CommandSession, caller: Caller) -> bool:
    """True if the caller started the session. Several tokens may have one name."""
    if caller.token_id is None or session.started_by != caller.label:
        return session.started_by == caller.label
    starts = ControllerCommand.objects.filter(session_id=session.id, type__in=START_TYPES)
    return starts.filter(token_id=caller.token_id).exists()


def _of_session(session: CommandSession, others: int) -> Target:
    return Target(
        controller_id=session.controller_id,
        host=session.controller.name,
        session_id=session.id,
        session_command=session.command,
        input_seq=session.input_seq,
        prompt=prompt_shown(session),
        live_programs=others,
    )


def _of_monitor(project_id: UUID, handle: str, arguments: Mapping[str, Any]) -> Target:
    if "log_file" in arguments:
        host_id, host = _host(project_id, str(arguments.get("controller") or ""))
        return Target(host_id, host, session_command=str(arguments["log_file"]))
    rows = Monitor.objects.select_related("controller").filter(
        project_id=project_id, status=Monitor.Status.ACTIVE
    )
    monitor = next((row for row in rows.filter(session_id=_uuid(handle))), None)
    if monitor is None:
        return Target()
    return Target(monitor.controller_id, monitor.controller.name, session_command=monitor.log_file)


def _session(project_id: UUID, handle: str) -> CommandSession:
    rows = CommandSession.objects.select_related("controller")
    session = rows.filter(project_id=project_id, id=_uuid(handle)).first()
    if session is None:
        raise SessionNotFound(handle[:64])
    return session


def _uuid(handle: str) -> UUID:
    try:
        return UUID(handle)
    except ValueError:
        return UUID(int=0)


def _host(project_id: UUID, named: str) -> tuple[UUID | None, str]:
    """The host of this name or id, or the only host; None if it is not known which."""
    rows = Controller.objects.filter(project_id=project_id, revoked_at__isnull=True)
    hosts = list(rows.values_list("id", "name"))
    if not named:
        return hosts[0] if len(hosts) == 1 else (None, "")
    return next((host for host in hosts if named in {host[1], str(host[0])}), (None, ""))
