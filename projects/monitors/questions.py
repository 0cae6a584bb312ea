"""Questions to a host about its files. Each is a row for as long as its caller waits.

A command changes something for good, so it is numbered and waits in the outbox. A question changes
nothing, or may be asked twice: it has no number and ends with the call.

A question is a row for two reasons. The host may be connected to another process of the server. And
a new connection asks again what the connection before it left unanswered.
"""

from datetime import timedelta
from typing import Final, TypeVar
from uuid import UUID

import msgspec
from django.db import connection

from controller_client.protocol import codec
from controller_client.protocol.limits import MAX_FILE_CHUNK_BYTES, MAX_NAMED_FILES
from controller_client.protocol.messages import (
    DeleteFile,
    FileChunk,
    FileDeleted,
    FilesNamed,
    NamedFile,
    NameFiles,
    ReadFile,
)
from controller_client.protocol.values import NAMES_FILES
from projects.errors.base import Unavailable
from projects.errors.hosts import ControllerOffline, ControllerRevoked
from projects.models import Controller, FileRequest
from projects.monitors.errors import HostSilent, HostTooOld
from projects.sessions import selectors
from projects.sessions.transactions.returning import once_back
from projects.sessions.waiting import watch
from projects.storage import clock
from projects.storage.access import in_database
from projects.storage.columns import as_parameter, time_as_parameter
from projects.wakeups import doorbells
from projects.wakeups.doorbells import Doorbell

CAPABILITY: Final = "files"
ANSWER_SECONDS: Final = 10.0
"""How long a host may take to answer, beside the time that the question asks it to wait."""
PER_TAKE: Final = 64

Answer = TypeVar("Answer", FileChunk, FileDeleted, FilesNamed)
Question = ReadFile | DeleteFile | NameFiles

_INSERT: Final = """
INSERT INTO projects_filerequest (id, controller_id, body, sent_epoch, expires_at)
VALUES (%s, %s, %s, 0, %s)
"""
_ANSWERED: Final = "SELECT answer FROM projects_filerequest WHERE id = %s"
_TAKE: Final = """
UPDATE projects_filerequest SET sent_epoch = %s
WHERE id IN (
    SELECT id FROM projects_filerequest
    WHERE controller_id = %s AND sent_epoch < %s AND answer IS NULL AND expires_at > %s LIMIT %s
) AND EXISTS (SELECT 1 FROM projects_controller WHERE id = %s AND epoch = %s)
RETURNING body
"""


# ---- the caller's side ---------------------------------------------------------------------------


async def read_file(controller_id: UUID, ask: ReadFile) -> FileChunk:
    """Asks a host for a part of a file. A failure on the host is a part of the answer.

    Raises ControllerRevoked, ControllerOffline, HostTooOld or HostSilent.
    """
    chunk = await _ask(controller_id, ask, FileChunk, ask.wait_seconds)
    if len(chunk.data) > MAX_FILE_CHUNK_BYTES or not (
        _is_place(chunk.identity, 64) and _is_place(chunk.mark, 128)
    ):
        # Our daemon never sends such an answer, and the columns could not hold it.
        raise HostSilent
    return chunk


def _is_place(text: str, max_chars: int) -> bool:
    return len(text) <= max_chars and text.isascii() and "\0" not in text


async def delete_file(controller_id: UUID, ask: DeleteFile) -> FileDeleted:
    """Asks a host to delete a file. Answers and raises as ``read_file`` does."""
    return await _ask(controller_id, ask, FileDeleted, 0.0)


async def files_named(controller_id: UUID, ask: NameFiles) -> list[NamedFile] | None:
    """Asks a host which files a command line would run; None if the host cannot say it."""
    try:
        answer = await _ask(controller_id, ask, FilesNamed, 0.0)
    except (ControllerRevoked, Unavailable, HostTooOld):
        return None
    return None if answer.failure is not None else answer.files[:MAX_NAMED_FILES]


async def _ask(
    controller_id: UUID, question: Question, kind: type[Answer], wait_seconds: float
) -> Answer:
    seconds = wait_seconds + ANSWER_SECONDS
    async with Doorbell(doorbells.question_group(question.id)) as bell:
        await once_back(in_database, _insert, controller_id, question, seconds)
        try:
            await doorbells.ring_files(controller_id)
            answer = await watch(
                bell, lambda is_last: _look(question.id, is_last), seconds, look_first=False
            )
        finally:
            await in_database(_forget, question.id)
    message = codec.decode_from_controller.decode(answer)
    if not isinstance(message, kind):
        raise HostSilent
    return message


def _insert(controller_id: UUID, question: Question, seconds: float) -> None:
    host = Controller.objects.only("name", "revoked_at", "lease_expires_at", "capabilities").get(
        id=controller_id
    )
    if host.revoked_at is not None:
        raise ControllerRevoked(host.name)
    if not selectors.is_online(host.lease_expires_at):
        raise ControllerOffline(host.name, host_id=controller_id)
    needed = NAMES_FILES if isinstance(question, NameFiles) else CAPABILITY
    if needed not in host.capabilities:
        raise HostTooOld(host.name)
    expires_at = time_as_parameter(clock.now() + timedelta(seconds=seconds))
    with connection.cursor() as cursor:
        cursor.execute(
            _INSERT,
            [
                as_parameter(UUID(question.id)),
                as_parameter(controller_id),
                codec.encode(question),
                expires_at,
            ],
        )


def _look(question_id: str, is_last: bool) -> bytes | None:
    with connection.cursor() as cursor:
        cursor.execute(_ANSWERED, [as_parameter(UUID(question_id))])
        row = cursor.fetchone()
    if row is not None and row[0] is not None:
        return bytes(row[0])
    if is_last or row is None:
        raise HostSilent
    return None


def _forget(question_id: str) -> None:
    FileRequest.objects.filter(id=question_id).delete()


# ---- the connection's side -----------------------------------------------------------------------


def take(controller_id: UUID, epoch: int) -> list[Question]:
    """Takes the questions to send now and marks them as sent under ``epoch``.

    PER_TAKE questions mean that there may be more.
    """
    key, now = as_parameter(controller_id), time_as_parameter(clock.now())
    with connection.cursor() as cursor:
        cursor.execute(_TAKE, [epoch, key, epoch, now, PER_TAKE, key, epoch])
        bodies = [bytes(row[0]) for row in cursor.fetchall()]
    questions = [codec.decode_from_server.decode(body) for body in bodies]
    return [
        msgspec.structs.replace(question, epoch=epoch)
        for question in questions
        if isinstance(question, Question)
    ]


def answer(controller_id: UUID, message: FileChunk | FileDeleted | FilesNamed) -> None:
    """Stores an answer for the call that waits for it.

    A host can answer only the questions that were sent to it.
    """
    FileRequest.objects.filter(
        id=UUID(message.reply_to), controller_id=controller_id, answer=None
    ).update(answer=codec.encode(message))


def forget_expired() -> int:
    """Removes questions whose callers died with their process. Returns their number."""
    return FileRequest.objects.filter(
        expires_at__lt=clock.now() - timedelta(seconds=ANSWER_SECONDS)
    ).delete()[0]
