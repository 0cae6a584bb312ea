"""``manage.py runserver``: serve everything with Daphne, for development.

Django's own command would serve the admin alone: it has no WebSockets, and ``/mcp`` and the probes
are outside Django. Daphne is not an installed app, so no other process loads Daphne.
"""

from typing import Any

from daphne.management.commands.runserver import Command as DaphneCommand
from django.core.management.base import CommandError


class Command(DaphneCommand):
    help = (
        "Serve everything (/mcp, the admin, /ws/controller/, the probes) for development, and "
        "restart when a file changes."
    )

    def handle(self, *arguments: Any, **options: Any) -> None:
        if not options["use_asgi"]:
            raise CommandError(
                "--noasgi would serve the admin alone: WSGI reaches neither /mcp nor controllers"
            )
        super().handle(*arguments, **options)
