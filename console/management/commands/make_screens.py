"""Makes the screens of a recording that a replay jumps to. A replay that is opened starts it."""

import select
import sys
from typing import Any
from uuid import UUID

from django.core.management.base import CommandParser

from console.parts.emulator import emulator_command
from console.parts.screens import make
from projects.management.refusals import RefusingCommand, refused
from projects.models import CommandSession


class Command(RefusingCommand):
    """``manage.py make_screens SESSION_ID``; a second run goes on where the first stopped."""

    help = "Makes the screens of a session's recording that a replay jumps to."

    def add_arguments(self, parser: CommandParser) -> None:
        """Take the session, and whether a server waits for it."""
        parser.add_argument("session_id", type=UUID)
        parser.add_argument(
            "--beside-server", action="store_true", help="end when standard input is closed"
        )

    def handle(self, *_args: Any, **options: Any) -> None:
        """Make the screens until all are there. Raises CommandError if there are none to make."""
        session_id = options["session_id"]
        if emulator_command() is None:
            raise refused(
                "there is no terminal emulator here (EMULATOR_NOT_FOUND). It needs Node, and: "
                "python -m quickstart.browser_files"
            )
        try:
            make(session_id, _server_lives if options["beside_server"] else lambda: True)
        except CommandSession.DoesNotExist:
            # Perhaps it was deleted meanwhile.
            raise refused(f"there is no session {session_id} (SESSION_NOT_FOUND).") from None


def _server_lives() -> bool:
    return not select.select([sys.stdin], [], [], 0)[0]
