"""The place of a monitor: how far it has read its log, and in which file.

A log is a name under which files come and go by rotation. The place names the file being read and
keeps the files that had the name before it: a program may still write to a file that was rotated
away.
"""

from dataclasses import dataclass
from typing import Final, NamedTuple, TypedDict
from uuid import UUID

from django.db.models import QuerySet

from controller_client.protocol.messages import FileChunk, FilePlace, ReadFile
from projects.audit.log import About
from projects.models import Monitor
from projects.monitors.errors import MonitorNotFound

MAX_FORMER_FILES: Final = 16
"""How many files that had the name before are still looked at."""
_COLUMNS: Final = (
    "project_id",
    "controller_id",
    "session_id",
    "log_file",
    "file_identity",
    "file_mark",
    "file_position",
    "file_former",
    "next_offset",
    "version",
)


class FormerFile(NamedTuple):
    """A file that had the log's name and was read up to ``position``. Stored as a JSON list."""

    identity: str
    mark: str
    position: int


class PlaceColumns(TypedDict, total=False):
    """The columns of a monitor's row that a read changes."""

    file_identity: str
    file_mark: str
    file_position: int
    file_former: list[FormerFile]


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """The row of an active monitor, as a read needs it.

    ``identity`` and ``mark`` are the host's names for the file and for the bytes before
    ``position``; the server does not interpret them. ``former`` has the oldest file first.
    ``next_offset`` counts the bytes read so far over all files. ``version`` rises with every read
    that found something, so that of two reads of one place only the first is stored.
    """

    monitor_id: int
    project_id: UUID
    controller_id: UUID
    session_id: UUID
    path: str
    identity: str
    mark: str
    position: int
    former: list[FormerFile]
    next_offset: int
    version: int

    @property
    def about(self) -> About:
        """The monitor as audit rows name it."""
        return self.project_id, self.controller_id, self.session_id

    def question(self, wait_seconds: float) -> ReadFile:
        """The question to the host: what follows this place, waiting up to ``wait_seconds``."""
        return ReadFile(
            path=self.path,
            identity=self.identity,
            mark=self.mark,
            position=self.position,
            wait_seconds=wait_seconds,
            former=[
                FilePlace(identity=file.identity, mark=file.mark, position=file.position)
                for file in self.former
            ],
        )

    def columns_after(self, chunk: FileChunk) -> PlaceColumns:
        """The columns to store once ``chunk``, the host's answer, was read."""
        end = chunk.position + len(chunk.data)
        read = FormerFile(chunk.identity, chunk.mark, end)
        if chunk.late:
            return {
                "file_former": [
                    read if file.identity == read.identity else file for file in self.former
                ]
            }
        former = self.former
        if chunk.reset == "rotated" and chunk.identity != self.identity:
            # A file system gives an identity to a new file again: the new file is not a former one.
            kept = [file for file in former if file.identity not in {self.identity, chunk.identity}]
            former = [*kept, FormerFile(self.identity, self.mark, self.position)][
                -MAX_FORMER_FILES:
            ]
        return {
            "file_identity": chunk.identity,
            "file_mark": chunk.mark,
            "file_position": end,
            "file_former": former,
        }


def active_monitors(project_id: UUID, session_id: UUID) -> QuerySet[Monitor]:
    """The active monitor of this id in the project: one row or none."""
    return Monitor.objects.filter(
        project_id=project_id, session_id=session_id, status=Monitor.Status.ACTIVE
    )


def place_of(project_id: UUID, session_id: UUID) -> Place:
    """The place of the active monitor of this id.

    Raises:
        MonitorNotFound: if the project has no active monitor of this id.

    """
    row = active_monitors(project_id, session_id).only(*_COLUMNS).first()
    if row is None:
        raise MonitorNotFound(session_id)
    return Place(
        monitor_id=row.id,
        project_id=row.project_id,
        controller_id=row.controller_id,
        session_id=row.session_id,
        path=row.log_file,
        identity=row.file_identity,
        mark=row.file_mark,
        position=row.file_position,
        former=[FormerFile(*file) for file in row.file_former],
        next_offset=row.next_offset,
        version=row.version,
    )


def parsed_id(text: str) -> UUID | None:
    """The UUID in ``text``, in lower case and with dashes; None for any other text."""
    try:
        parsed = UUID(text)
    except ValueError:
        return None
    return parsed if str(parsed) == text else None


def monitor_id_of(text: str) -> UUID:
    """The id of a monitor that a caller names.

    Raises:
        MonitorNotFound: if ``text`` is no id that a monitor can have.

    """
    if (parsed := parsed_id(text)) is None:
        raise MonitorNotFound(text[:64])
    return parsed
