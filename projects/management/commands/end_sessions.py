"""``manage.py end_sessions PROJECT``: end the active sessions of a project.

Each program is asked to end, and killed with its process tree if it does not within a few seconds.
It looks again for sessions that started meanwhile, a few times. Prints one line per session. Exits
with 1 if a session has not ended, or if callers go on starting sessions.
"""

from argparse import ArgumentParser
from typing import Any, Final
from uuid import UUID

from asgiref.sync import async_to_sync
from django.core.management.base import CommandError
from django.db.models import QuerySet

from projects import services
from projects.management.naming import actor, controller_named, printable, project_named
from projects.management.refusals import RefusingCommand
from projects.models import CommandSession, Controller, Project
from projects.sessions.selectors import IS_ACTIVE, found_after_starts

_ROUNDS: Final = 5


class Command(RefusingCommand):
    help = "End the active sessions of a project, or those on one of its controllers"

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("project", help="name of the project")
        parser.add_argument(
            "--controller", default=None, help="only the sessions on this controller"
        )

    def handle(self, *, project: str, controller: str | None, **_options: Any) -> None:
        row = project_named(project)
        active = _active(row, controller)
        asked: list[UUID] = []
        failed = 0
        for _ in range(_ROUNDS):
            fresh = found_after_starts(row.pk, active.exclude(pk__in=asked))
            if not fresh:
                break
            failed += self._end(fresh)
            asked += [session.pk for session in fresh]
        else:
            raise CommandError("callers go on starting sessions; run it again")
        if not asked:
            self.stdout.write("no session was active")
        if failed:
            raise CommandError(f"{failed} of {len(asked)} sessions have not ended")

    def _end(self, sessions: list[CommandSession]) -> int:
        """Asks the sessions to end, and prints what came of it. Returns how many have not ended."""
        problems = async_to_sync(services.sessions_terminate)(
            [(session.project_id, session.pk) for session in sessions],
            actor=actor(),
        )
        for session, problem in zip(sessions, problems, strict=True):
            about = f"{session.pk} on {session.controller.name}: {session.command}"
            told = f"not ended: {about}: {problem}" if problem else f"ended: {about}"
            self.stdout.write(printable(told))
        return sum(map(bool, problems))


def _active(project: Project, controller: str | None) -> QuerySet[CommandSession]:
    """All active sessions, including those on revoked controllers. Raises CommandError."""
    found = CommandSession.objects.filter(IS_ACTIVE, project=project).select_related("controller")
    if controller is None:
        return found
    controller_named(Controller.objects.filter(project=project), controller)
    return found.filter(controller__name=controller)
