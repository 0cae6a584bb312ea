"""Makes the screens of a recording that a replay jumps to. A replay that is opened starts it."""

import select
import sys
from typing import Any
from uuid import UUID

from django.core.management.base import BaseCommand, CommandParser

from console.parts.screens import make


class Command(BaseCommand):
    """``manage.py make_screens SESSION_ID``; a second run goes on where the first stopped."""

    help = "Makes the screens of a session's recording that a replay jumps to."

    def add_arguments(self, parser: CommandParser) -> None:
        """Take the session, and whether a server waits for it."""
        parser.add_argument("session_id", type=UUID)
        parser.add_argument(
            "--beside-server", action="store_true", help="end when standard input is closed"
        )

    def handle(self, *_args: Any, **options: Any) -> None:
        """Make the screens until all are there."""
        is_beside = options["beside_server"]
        make(options["session_id"], _server_lives if is_beside else lambda: True)


def _server_lives() -> bool:
    return not select.select([sys.stdin], [], [], 0)[0]
