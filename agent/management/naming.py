"""What people name on a command line: a project, a run, themselves."""

import getpass
from collections.abc import Iterator
from contextlib import contextmanager
from uuid import UUID

from django.core.management.base import CommandError
from django.db import OperationalError, ProgrammingError

from agent.errors import RunNotFound
from agent.models import AgentRun
from projects.errors import ControllerActionError
from projects.management.refusals import EXIT_REFUSED, refusal
from projects.models import Project


@contextmanager
def refusals() -> Iterator[None]:
    """What is refused inside ends the command by code and hint; also where no server has been set up yet."""
    try:
        yield
    except ControllerActionError as error:
        raise refusal(error) from None
    except (OperationalError, ProgrammingError) as error:
        said = f"the database cannot be used: {error} (STORAGE_UNAVAILABLE). Start a server first: bin/quickstart, or manage.py migrate"
        raise CommandError(said, returncode=EXIT_REFUSED) from None


def actor() -> str:
    """Who acts, in audit rows."""
    return f"cli:{getpass.getuser()}"


def project_named(name: str | None) -> Project:
    """The project; without a name the only one. Raises CommandError."""
    projects = list(Project.objects.filter(name=name) if name else Project.objects.all()[:2])
    if len(projects) == 1:
        return projects[0]
    if name or not projects:
        said = f"there is no project {name!r}" if name else "there is no project yet"
        raise CommandError(f"{said} (PROJECT_NOT_FOUND). Create one: manage.py create_project NAME", returncode=EXIT_REFUSED)
    raise CommandError("there are several projects (PROJECT_AMBIGUOUS). Say which with --project", returncode=EXIT_REFUSED)


def run_named(text: str) -> UUID:
    """The run with this id, or the only one whose id begins like that. Raises RunNotFound."""
    found = list(AgentRun.objects.filter(id__startswith=text.lower()).values_list("id", flat=True)[:2]) if text.strip() else []
    if len(found) == 1:
        return found[0]
    raise RunNotFound(text)
