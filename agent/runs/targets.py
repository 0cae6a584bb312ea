"""The host and the session that a call goes to, for the person who has to approve it."""

from dataclasses import dataclass
from uuid import UUID

from projects.models import CommandSession, Controller


@dataclass(frozen=True, slots=True)
class Target:
    """The host, the session, and the other sessions of the run that are alive meanwhile.

    ``host`` is a controller's name; empty if the call does not say which.
    """

    host: str = ""
    session_id: UUID | None = None
    session_command: str = ""
    live_programs: int = 0


def target_of(*, project_id: UUID, started_by: str, session: str, named_host: str) -> Target:
    """Finds the target of a call.

    ``session`` is the handle that the call names, ``named_host`` the controller that a start names.
    Either may be empty.
    """
    live = CommandSession.objects.filter(
        project_id=project_id, started_by=started_by, ended_at__isnull=True
    )
    found = _session(project_id, session)
    if found is not None:
        others = live.exclude(id=found.id).count()
        return Target(
            host=found.controller.name,
            session_id=found.id,
            session_command=found.command,
            live_programs=others,
        )
    return Target(host="" if session else _host(project_id, named_host), live_programs=live.count())


def _session(project_id: UUID, session: str) -> CommandSession | None:
    try:
        session_id = UUID(session)
    except ValueError:
        return None
    return (
        CommandSession.objects.select_related("controller")
        .filter(project_id=project_id, id=session_id)
        .first()
    )


def _host(project_id: UUID, named: str) -> str:
    hosts = list(
        Controller.objects.filter(project_id=project_id, revoked_at__isnull=True).values_list(
            "id", "name"
        )
    )
    if not named:
        return hosts[0][1] if len(hosts) == 1 else ""
    return next((name for host_id, name in hosts if named in {name, str(host_id)}), "")
