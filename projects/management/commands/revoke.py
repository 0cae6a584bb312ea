"""``manage.py revoke WHAT``: revoke a token, a credential or a controller.

Its open connections and waiting calls end within seconds.
"""

from argparse import ArgumentParser
from typing import Any

from django.core.management.base import CommandError

from projects.enrolment.revocation import (
    api_token_revoke,
    controller_credential_revoke,
    controller_revoke,
)
from projects.management.naming import actor, controller_at, names_of, printable, unknown
from projects.management.refusals import RefusingCommand
from projects.models import ApiToken, CommandSession, Controller, ControllerCredential
from projects.sessions.selectors import ACTIVE

MAX_SHOWN = 50


class Command(RefusingCommand):
    help = (
        "Revoke an API token or a credential by its key id (the part after hl_ or ctl_), or a "
        "controller as PROJECT/NAME."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument(
            "what", help="a key id (16 hexadecimal digits), or PROJECT/NAME of a controller"
        )

    def handle(self, *, what: str, **_options: Any) -> None:
        if token := ApiToken.objects.select_related("project").filter(key_id=what).first():
            told = _told(f"the API token {token.name} of {token.project.name}", token)
            api_token_revoke(token=token, actor=actor())
        elif (
            credential := ControllerCredential.objects.select_related("controller")
            .filter(key_id=what)
            .first()
        ):
            host = credential.controller
            told = _told(f"a credential of {host.project.name}/{host.name}", credential)
            controller_credential_revoke(credential=credential, actor=actor())
        elif "/" in what:
            controller = controller_at(what)
            told = f"the controller {controller.project.name}/{controller.name}"
            self._list_sessions(controller)
            controller_revoke(controller=controller, actor=actor())
        else:
            raise _unknown(what)
        self.stdout.write(printable(f"revoked: {told}"))

    def _list_sessions(self, controller: Controller) -> None:
        active = CommandSession.objects.filter(controller=controller, state__in=ACTIVE)
        running = list(active.order_by("-created_at")[:MAX_SHOWN])
        if running:
            newest = f" (the newest {MAX_SHOWN})" if len(running) == MAX_SHOWN else ""
            self.stdout.write(
                f"These sessions may continue{newest}. Once the controller is revoked, the server "
                "cannot end them; end them on the host:"
            )
            for session in running:
                self.stdout.write(
                    f"  {session.id}  pid {session.pid or 'unknown'}  {session.command[:80]!a}"
                )


def _told(what: str, row: ApiToken | ControllerCredential) -> str:
    """The words for what is revoked, and when it was before if it was."""
    before = row.revoked_at
    return what if before is None else f"{what} (it was before, at {before:%F %T} UTC)"


def _unknown(what: str) -> CommandError:
    tokens = ApiToken.objects.filter(revoked_at__isnull=True).values_list("key_id", "name")
    controllers = Controller.objects.filter(revoked_at__isnull=True).values_list(
        "project__name", "name"
    )
    remedy = (
        f"Controllers: {names_of('/'.join(each) for each in controllers)}. The admin lists the "
        "credentials of a controller on its page"
    )
    return unknown(
        "token",
        what,
        (f"{key_id} ({name})" for key_id, name in tokens),
        code="TOKEN_NOT_FOUND",
        remedy=remedy,
    )
