"""``manage.py end_sessions PROJECT``: end the active sessions of a project.

Each program is asked to end, and killed with its process tree if it does not within a few seconds.
Prints one line per session. Exits with 1 if a session has not ended.
"""

from argparse import ArgumentParser
from typing import Any

from asgiref.sync import async_to_sync
from django.core.management.base import CommandError
from django.db.models import QuerySet

from projects import services
from projects.management.naming import actor, controller_named, printable, project_named
from projects.management.refusals import RefusingCommand
from projects.models import CommandSession, Controller
from projects.sessions.selectors import ACTIVE


class Command(RefusingCommand):
    help = "End the active sessions of a project, or those on one of its controllers"

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("project", help="name of the project")
        parser.add_argument(
            "--controller", default=None, help="only the sessions on this controller"
        )

    def handle(self, *, project: str, controller: str | None, **_options: Any) -> None:
        sessions = list(_active(project, controller))
        problems = async_to_sync(services.sessions_terminate)(
            [(session.project_id, session.pk) for session in sessions],
            actor=actor(),
        )
        for session, problem in zip(sessions, problems, strict=True):
            about = f"{session.pk} on {session.controller.name}: {session.command}"
            told = f"not ended: {about}: {problem}" if problem else f"ended: {about}"
            self.stdout.write(printable(told))
        if any(problems):
            raise CommandError(
                f"{sum(map(bool, problems))} of {len(sessions)} sessions have not ended"
            )


def _active(project: str, controller: str | None) -> QuerySet[CommandSession]:
    """All active sessions, including those on revoked controllers. Raises CommandError."""
    row = project_named(project)
    found = CommandSession.objects.filter(project=row, state__in=ACTIVE).select_related(
        "controller"
    )
    if controller is None:
        return found
    controller_named(Controller.objects.filter(project=row), controller)
    return found.filter(controller__name=controller)
