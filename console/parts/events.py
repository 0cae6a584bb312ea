"""The audit events that a person may see, narrowed by what the address says."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final
from uuid import UUID

from django.db.models import Q, QuerySet
from django.http import HttpRequest

from projects.admin.parts.access import projects_of, sees_every_project
from projects.audit.log import SERVER
from projects.models import AuditEvent, CommandSession, Controller, Project


class WrongFilter(ValueError):
    """The address names a filter whose value means nothing. Nothing is shown then."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """The filters of a time line. ``values`` are the texts of the address, to show again."""

    condition: Q
    values: dict[str, str]


FILTERS: Final = ("project", "host", "session", "actor", "action", "since", "until")


_MOST_CHARS: Final = 200
"""No name, id or time is as long. A database refuses to look for what is much longer."""


def wanted_by(query: Any) -> Wanted:
    """Reads the filters. Raises WrongFilter: a broken filter must not show everything."""
    values = {name: query.get(name, "").strip() for name in FILTERS}
    condition = Q()
    for name, value in values.items():
        if len(value) > _MOST_CHARS:
            raise WrongFilter(f"{name}: has more than {_MOST_CHARS} characters")
        if value:
            condition &= _condition(name, value)
    return Wanted(condition, {name: value for name, value in values.items() if value})


def _condition(name: str, value: str) -> Q:
    try:
        match name:
            case "project":
                return Q(project_id=UUID(value))
            case "session":
                return Q(session_id=UUID(value))
            case "host":
                sessions = CommandSession.objects.filter(controller_id=UUID(value))
                of_sessions = Q(
                    session_id__in=sessions.values("id"),
                    project_id__in=sessions.values("project_id"),
                )
                return Q(controller_id=UUID(value)) | of_sessions
            case "since":
                return Q(created_at__gte=_moment(value))
            case "until":
                return Q(created_at__lte=_moment(value))
    except (ValueError, OverflowError):
        raise WrongFilter(f"{name}: {value!r} is not understood") from None
    return Q(**{f"{name}__icontains": value})


def _moment(text: str) -> datetime:
    at = datetime.fromisoformat(text)
    return (at if at.tzinfo else at.replace(tzinfo=UTC)).astimezone(UTC)


def events_of(request: HttpRequest, wanted: Wanted) -> QuerySet[AuditEvent]:
    """The events of the person's projects, newest first.

    Events of the server itself are for those who see every project.
    """
    rows = AuditEvent.objects.filter(wanted.condition)
    if not sees_every_project(request):
        rows = rows.filter(project_id__in=projects_of(request).values("pk"))
    return rows.order_by("-id")


@dataclass(frozen=True, slots=True)
class Names:
    """The names of what events are about, as far as it still exists.

    The command of a session is found by its project and its id: a monitor has the id that its
    caller chose, which may be that of a session of another project.
    """

    projects: dict[UUID, str]
    hosts: dict[UUID, str]
    commands: dict[tuple[UUID, UUID], str]

    def command_of(self, event: AuditEvent) -> str | None:
        """The command of the session that an event is about; None if it is about none."""
        session = event.session_id
        return None if session is None else self.commands.get((event.project_id, session))


def names_of(events: Iterable[AuditEvent]) -> Names:
    """Looks the names of all these events up, with one query for each kind."""
    events = list(events)
    hosts = {event.controller_id for event in events if event.controller_id}
    sessions = {event.session_id for event in events if event.session_id}
    projects = Project.objects.filter(pk__in={event.project_id for event in events})
    of_sessions = CommandSession.objects.filter(pk__in=sessions)
    commands = of_sessions.values_list("project_id", "pk", "command")
    return Names(
        {SERVER: "the server", **dict(projects.values_list("pk", "name"))},
        dict(Controller.objects.filter(pk__in=hosts).values_list("pk", "name")),
        {(project, pk): command for project, pk, command in commands},
    )
