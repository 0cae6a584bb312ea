"""Lists of hosts, sessions and monitors, newest first.

A page costs what it shows, whatever else is kept: an index has its rows in the order of the page.
``tests/unit/projects/test_query_plans.py`` holds that for every statement here.
"""

from collections.abc import Sequence
from datetime import datetime
from typing import Any, Final, NamedTuple
from uuid import UUID

from projects.models import CommandSession, Monitor
from projects.reads.pages import whole_page
from projects.reads.results import (
    ControllerList,
    ControllerStatus,
    ListedMonitor,
    MonitorPage,
    SessionPage,
    SessionStatus,
)
from projects.sessions import selectors
from projects.sessions.answers.results import TerminalState
from projects.storage.access import at_length, in_database
from projects.storage.columns import as_json, as_parameter, is_one_of, sql, time_as_parameter
from projects.storage.rows import fetch_rows


class ListedHost(NamedTuple):
    """The columns of a host that a list shows."""

    id: UUID
    name: str
    lease_expires_at: datetime | None
    os: str
    platform: str
    hostname: str
    client_version: str
    log_roots: Any


class ListedSession(NamedTuple):
    """The columns of a session that a list shows, or that say what it shows."""

    id: UUID
    controller_name: str
    kind: str
    command: str
    state: str
    terminal_state: str
    terminal_kind: str
    terminal_offset: int
    terminal_input_seq: int
    input_seq: int
    started_by: str
    created_at: datetime
    ended_at: datetime | None
    exit_code: int | None
    signal: str
    end_reason: str
    ended_by: str
    stdout_next_offset: int


_HOSTS: Final = sql(
    """
SELECT {columns} FROM projects_controller
WHERE project_id = %s AND revoked_at IS NULL ORDER BY name
""",
    columns=", ".join(ListedHost._fields),
)
_HOST_NAME: Final = "(SELECT name FROM projects_controller c WHERE c.id = s.controller_id)"
_COLUMNS: Final = ", ".join(
    _HOST_NAME if name == "controller_name" else f"s.{name}" for name in ListedSession._fields
)
_SESSIONS: Final = """
SELECT {columns} FROM projects_commandsession s
WHERE {of} ORDER BY s.created_at DESC LIMIT %s
"""
_MONITOR_IS_ACTIVE: Final = is_one_of("status", [Monitor.Status.ACTIVE.value])


async def controller_list(project_id: UUID) -> ControllerList:
    """The project's hosts, by name."""
    return await in_database(_controller_list, project_id)


async def session_list(
    project_id: UUID,
    *,
    active_only: bool = False,
    controller: str | None = None,
    limit: int = 20,
    before: datetime | None = None,
) -> SessionPage:
    """One page of the project's sessions, newest first; it can pass ``limit`` (``reads.pages``).

    ``before``: ``next_before`` of the page before. Raises ControllerNotFound.
    """
    return await at_length(_session_list, project_id, active_only, controller, limit, before)


async def monitor_list(
    project_id: UUID, *, active_only: bool = True, limit: int = 20, before: datetime | None = None
) -> MonitorPage:
    """One page of the project's monitors, newest first; it can pass ``limit`` (``reads.pages``).

    ``before``: ``next_before`` of the page before.
    """
    return await in_database(_monitor_list, project_id, active_only, limit, before)


def _controller_list(project_id: UUID) -> ControllerList:
    listed = [
        ControllerStatus(
            id=host.id,
            name=host.name,
            online=selectors.is_online(host.lease_expires_at),
            lease_expires_at=host.lease_expires_at,
            os=host.os,
            platform=host.platform,
            hostname=host.hostname,
            client_version=host.client_version,
            log_roots=as_json(host.log_roots),
        )
        for host in fetch_rows(ListedHost, _HOSTS, [as_parameter(project_id)])
    ]
    return ControllerList(controllers=listed)


def _session_list(
    project_id: UUID, active_only: bool, controller: str | None, limit: int, before: datetime | None
) -> SessionPage:
    # A host belongs to one project, so all sessions of a host need no word of the project.
    host = None if controller is None else selectors.controller_for(project_id, controller).id
    conditions: dict[str, Sequence[Any]] = {}
    if active_only or host is None:
        conditions["s.project_id = %s"] = [as_parameter(project_id)]
    if host is not None:
        conditions["s.controller_id = %s"] = [as_parameter(host)]
    if active_only:
        conditions[f"s.{selectors.STATE_IS_ACTIVE}"] = []
    if before is not None:
        conditions["s.created_at < %s"] = [time_as_parameter(before)]
    values = [value for found in conditions.values() for value in found]
    statement = sql(_SESSIONS, columns=_COLUMNS, of=" AND ".join(conditions))
    page, next_before = whole_page(
        lambda most: fetch_rows(ListedSession, statement, [*values, most]),
        limit,
        lambda row: row.created_at,
    )
    return SessionPage(
        sessions=[session_status(row, row.controller_name) for row in page],
        next_before=next_before,
    )


def _monitor_list(
    project_id: UUID, active_only: bool, limit: int, before: datetime | None
) -> MonitorPage:
    found = Monitor.objects.filter(project_id=project_id).select_related("controller")
    if active_only:
        found = found.filter(_MONITOR_IS_ACTIVE)
    if before is not None:
        found = found.filter(started_at__lt=before)
    newest_first = found.order_by("-started_at")
    page, next_before = whole_page(
        lambda most: list(newest_first[:most]), limit, lambda row: row.started_at
    )
    listed = [
        ListedMonitor(
            session_id=row.session_id,
            status="active" if row.status == Monitor.Status.ACTIVE else "stopped",
            session_type=row.session_type,
            controller=row.controller.name,
            log_file=row.log_file,
            metadata=row.metadata,
            file_position=row.file_position,
            started_by=row.started_by,
            start_time=row.started_at,
            read_at=row.read_at,
        )
        for row in page
    ]
    return MonitorPage(monitors=listed, next_before=next_before)


def session_status(session: ListedSession | CommandSession, controller_name: str) -> SessionStatus:
    """A session as a list shows it."""
    state = state_shown(session.state, is_waiting=_is_waiting(session))
    is_over = state == "exited"
    return SessionStatus(
        session_id=session.id,
        controller=controller_name,
        kind=session.kind,
        command=session.command,
        state=state,
        lifecycle=session.state,
        prompt_kind=session.terminal_kind if state == "awaiting_input" else None,
        started_by=session.started_by,
        created_at=session.created_at,
        ended_at=session.ended_at,
        exit_code=session.exit_code,
        signal=session.signal or None,
        end_reason=(session.end_reason or session.state.lower()) if is_over else None,
        ended_by=(session.ended_by or None) if is_over else None,
        total_bytes=session.stdout_next_offset,
    )


def state_shown(lifecycle: str, *, is_waiting: bool) -> TerminalState:
    """The state of a session in the words of the tools."""
    if lifecycle not in selectors.ACTIVE:
        return "exited"
    return "awaiting_input" if is_waiting else "running"


def _is_waiting(session: ListedSession | CommandSession) -> bool:
    return (
        session.state == "RUNNING"
        and session.terminal_state == "awaiting_input"
        and session.terminal_offset >= session.stdout_next_offset
        and session.terminal_input_seq >= session.input_seq
    )
