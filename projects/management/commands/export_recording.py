"""``manage.py export_recording SESSION``: write what a session showed to stdout."""

import sys
from argparse import ArgumentParser
from typing import Any
from uuid import UUID

from asgiref.sync import async_to_sync

from projects import services
from projects.management.naming import actor
from projects.management.refusals import RefusingCommand, refused
from projects.models import CommandSession


class Command(RefusingCommand):
    help = (
        "Export a session: as asciicast v3, which players of terminal recordings read, as plain "
        "text, or as the bytes that are stored. The export is audited."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("session", type=UUID, help="id of the session")
        parser.add_argument(
            "--format", choices=services.EXPORT_FORMATS, default="cast", dest="export_format"
        )

    def handle(
        self, *, session: UUID, export_format: services.ExportFormat, **_options: Any
    ) -> None:
        projects = CommandSession.objects.filter(pk=session).values_list("project_id", flat=True)
        if (project_id := projects.first()) is None:
            raise refused(f"there is no session {session} (SESSION_NOT_FOUND).")
        async_to_sync(_write)(project_id, session, export_format)


async def _write(project_id: UUID, session: UUID, export_format: services.ExportFormat) -> None:
    pieces = await services.recording_export(
        project_id, session, export_format=export_format, actor=actor()
    )
    async for piece in pieces:
        # A raw recording is no text: it goes past the encoding of stdout.
        sys.stdout.buffer.write(piece)
    sys.stdout.buffer.flush()
