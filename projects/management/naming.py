"""Names that people type on a command line, and the rows that have them.

If there is no row of a name, the refusal lists the names that exist.
"""

import getpass
import os
from collections.abc import Iterable
from typing import Final

from django.core.management.base import CommandError
from django.db.models import QuerySet

from projects.management.refusals import refused
from projects.models import AttentionTarget, Controller, Project, Secret

MAX_LISTED: Final = 20
_CREATE_PROJECT: Final = "Create one: manage.py create_project NAME"


def actor() -> str:
    """The name of the person at the command line, for audit rows."""
    try:
        name = getpass.getuser()
    except (KeyError, OSError):
        # A container may run as any number, which nobody has given a name.
        name = f"user {os.getuid()}"
    return f"cli:{name}"


def printable(text: str) -> str:
    """Text that a caller or a host chose, in characters that do nothing to a terminal."""
    return "".join(one if one.isprintable() else ascii(one)[1:-1] for one in text)


def unknown(
    kind: str, name: str, known: Iterable[object], *, code: str, remedy: str
) -> CommandError:
    """The refusal of a name that no ``kind`` has; it lists the first of the ``known`` names."""
    told = f"there is no {kind} {name!r}; {kind}s: {names_of(known)} ({code}). {remedy}"
    return refused(printable(told))


def names_of(known: Iterable[object]) -> str:
    """The first MAX_LISTED names in alphabetical order, and the number of further ones."""
    names = sorted({str(name) for name in known})
    more = [f"and {len(names) - MAX_LISTED} more"] if len(names) > MAX_LISTED else []
    return ", ".join([*names[:MAX_LISTED], *more]) or "none"


def project_named(name: str | None) -> Project:
    """The project of this name; without a name, the only project. Raises CommandError."""
    projects = list(
        Project.objects.all()[:2] if name is None else Project.objects.filter(name=name)
    )
    if len(projects) == 1:
        return projects[0]
    known = Project.objects.values_list("name", flat=True)
    if name is not None:
        raise unknown("project", name, known, code="PROJECT_NOT_FOUND", remedy=_CREATE_PROJECT)
    if not projects:
        raise refused(f"there is no project yet (PROJECT_NOT_FOUND). {_CREATE_PROJECT}")
    raise refused(
        f"there are several projects: {names_of(known)} (PROJECT_AMBIGUOUS). Name one with "
        "--project"
    )


def controllers_of(project: Project) -> QuerySet[Controller]:
    """All controllers of a project that are not revoked."""
    return Controller.objects.filter(project=project, revoked_at__isnull=True)


def controller_named(controllers: QuerySet[Controller], name: str) -> Controller:
    """The controller of this name, out of ``controllers`` of one project. Raises CommandError."""
    found = controllers.filter(name=name).order_by("revoked_at").first()
    if found is None:
        raise _unknown_controller(name, controllers.values_list("name", flat=True))
    return found


def controller_at(path: str) -> Controller:
    """The controller ``PROJECT/NAME``, if it is not revoked. Raises CommandError."""
    project, _, name = path.partition("/")
    if not name:
        paths = Controller.objects.filter(revoked_at__isnull=True).values_list(
            "project__name", "name"
        )
        raise _unknown_controller(path, ("/".join(each) for each in paths))
    return controller_named(controllers_of(project_named(project)), name)


def _unknown_controller(name: str, known: Iterable[str]) -> CommandError:
    remedy = "Enrol a host: manage.py create_enrolment_code PROJECT NAME"
    return unknown("controller", name, known, code="CONTROLLER_NOT_FOUND", remedy=remedy)


def secret_named(project: Project, name: str) -> Secret:
    """The secret of this name in the project. Raises CommandError."""
    secrets = Secret.objects.filter(project=project)
    found = secrets.filter(name=name).first()
    if found is None:
        known = secrets.values_list("name", flat=True)
        raise unknown(
            "secret", name, known, code="SECRET_NOT_FOUND", remedy="Store it: manage.py set_secret"
        )
    return found


def targets_of(project: Project, name: str | None) -> QuerySet[AttentionTarget]:
    """The target of this name; without a name, all of the project. Raises CommandError."""
    targets = AttentionTarget.objects.filter(project=project)
    found = targets if name is None else targets.filter(name=name)
    if not found:
        known = names_of(targets.values_list("name", flat=True))
        what = "no target" if name is None else f"no target {name!r}; targets: {known}"
        raise refused(
            f"{project.name} has {what} (TARGET_NOT_FOUND). Make one: manage.py "
            "set_attention_target"
        )
    return found
