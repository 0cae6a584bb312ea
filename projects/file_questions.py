"""Questions to a host about its files, each a row for as long as its caller waits.

Unlike a command a question changes nothing that lasts, or may be asked twice: so it has no number, is in no outbox, and is gone with the
call. The row is there because the host may be connected to another process of the server, and so that a new connection asks again what
the one before it did not answer. While nobody asks there is no row.
"""

from datetime import timedelta
from functools import partial
from typing import Final, TypeVar
from uuid import UUID

import msgspec
from django.db import connection

from controller_client.protocol import codec
from controller_client.protocol.limits import MAX_FILE_CHUNK_BYTES
from controller_client.protocol.messages import DeleteFile, FileChunk, FileDeleted, ReadFile
from projects import clock, dispatch, selectors
from projects.database import in_database
from projects.dispatch import Doorbell, as_parameter, time_as_parameter
from projects.errors import ControllerOffline
from projects.models import Controller, FileRequest
from projects.monitor_errors import HostSilent, HostTooOld
from projects.watching import watch

CAPABILITY: Final = "files"
ANSWER_SECONDS: Final = 10.0
"""How long a host may take over what it does not wait in."""
PER_TAKE: Final = 64

Answer = TypeVar("Answer", FileChunk, FileDeleted)

_INSERT: Final = """
INSERT INTO projects_filerequest (id, controller_id, body, sent_epoch, expires_at) VALUES (%s, %s, %s, 0, %s)
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


# ---- the caller's side -------------------------------------------------------------------------------------------------


async def read_file(controller_id: UUID, ask: ReadFile) -> FileChunk:
    """The host's answer, its failures among them. Raises ControllerOffline, HostTooOld or HostSilent."""
    chunk = await _ask(controller_id, ask, FileChunk, ask.wait_seconds)
    if len(chunk.data) > MAX_FILE_CHUNK_BYTES or not (_is_place(chunk.identity, 64) and _is_place(chunk.mark, 128)):
        # No daemon of ours says such a thing.
        raise HostSilent
    return chunk


def _is_place(text: str, max_chars: int) -> bool:
    return len(text) <= max_chars and text.isascii() and "\0" not in text


async def delete_file(controller_id: UUID, ask: DeleteFile) -> FileDeleted:
    """The same for a deletion."""
    return await _ask(controller_id, ask, FileDeleted, 0.0)


async def _ask(controller_id: UUID, question: ReadFile | DeleteFile, kind: type[Answer], wait_seconds: float) -> Answer:
    seconds = wait_seconds + ANSWER_SECONDS
    async with Doorbell(dispatch.question_group(question.id)) as bell:
        await in_database(_insert, controller_id, question, seconds)
        try:
            await dispatch.ring_files(controller_id)
            answer = await watch(bell, partial(_look, question.id), seconds, look_first=False)
        finally:
            await in_database(_forget, question.id)
    message = codec.decode_from_controller.decode(answer)
    if not isinstance(message, kind):
        raise HostSilent
    return message


def _insert(controller_id: UUID, question: ReadFile | DeleteFile, seconds: float) -> None:
    host = Controller.objects.only("name", "lease_expires_at", "capabilities").get(id=controller_id)
    if not selectors.is_online(host.lease_expires_at):
        raise ControllerOffline(host.name)
    if CAPABILITY not in host.capabilities:
        raise HostTooOld(host.name)
    expires_at = time_as_parameter(clock.now() + timedelta(seconds=seconds))
    with connection.cursor() as cursor:
        cursor.execute(_INSERT, [as_parameter(UUID(question.id)), as_parameter(controller_id), codec.encode(question), expires_at])


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


# ---- the connection's side ---------------------------------------------------------------------------------------------


def take(controller_id: UUID, epoch: int) -> list[ReadFile | DeleteFile]:
    """Questions to send now, marked as sent under ``epoch``; PER_TAKE of them means that there may be more."""
    key, now = as_parameter(controller_id), time_as_parameter(clock.now())
    with connection.cursor() as cursor:
        cursor.execute(_TAKE, [epoch, key, epoch, now, PER_TAKE, key, epoch])
        bodies = [bytes(row[0]) for row in cursor.fetchall()]
    questions = [codec.decode_from_server.decode(body) for body in bodies]
    return [msgspec.structs.replace(question, epoch=epoch) for question in questions if isinstance(question, ReadFile | DeleteFile)]


def answer(controller_id: UUID, message: FileChunk | FileDeleted) -> None:
    """Stores an answer for whoever still waits for it. Only a question that was put to this host can be answered by it."""
    FileRequest.objects.filter(id=UUID(message.reply_to), controller_id=controller_id, answer=None).update(answer=codec.encode(message))


def forget_expired() -> int:
    """Removes questions whose callers died with their process; how many there were."""
    return FileRequest.objects.filter(expires_at__lt=clock.now() - timedelta(seconds=ANSWER_SECONDS)).delete()[0]
