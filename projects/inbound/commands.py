"""What a connection has to send: outbox rows this connection has not sent yet, in their order."""

import logging
from collections.abc import Sequence
from typing import Any, Final
from uuid import UUID

import msgspec
from cryptography.fernet import InvalidToken
from django.db import connection, transaction

from controller_client.protocol.codec import decode_from_server
from controller_client.protocol.messages import FromServer
from controller_client.protocol.session_state import SessionState
from projects import clock
from projects.dispatch import START_TYPES, as_parameter, as_time
from projects.encryption import open_sealed
from projects.inbound.ending import end_session
from projects.models import CommandSession, ControllerCommand

logger = logging.getLogger(__name__)

COMMANDS_PER_TAKE: Final = 32

# A new connection sends again what the one before it sent and nobody settled: every command is safe to repeat.
_TAKE: Final = """
UPDATE projects_controllercommand SET sent_epoch = %s
WHERE id IN (
    SELECT id FROM projects_controllercommand
    WHERE controller_id = %s AND settled_at IS NULL AND (sent_epoch IS NULL OR sent_epoch < %s)
    ORDER BY seq LIMIT %s
) AND EXISTS (SELECT 1 FROM projects_controller WHERE id = %s AND epoch = %s)
RETURNING seq, type, session_id, body, expires_at
"""
_HAND_OVER: Final = "UPDATE projects_commandsession SET state = %s WHERE id = %s AND state = %s"


def take_commands(controller_id: UUID, epoch: int) -> tuple[list[FromServer], list[str]]:
    """Messages to send now, in order, marked as sent under ``epoch``; and the ids of sessions that ended because their START came too late.

    A fenced connection gets nothing. At most COMMANDS_PER_TAKE: a full answer means that there may be more.
    """
    key = as_parameter(controller_id)
    with transaction.atomic():
        with connection.cursor() as cursor:
            cursor.execute(_TAKE, [epoch, key, epoch, COMMANDS_PER_TAKE, key, epoch])
            rows = sorted(cursor.fetchall())
        messages: list[FromServer] = []
        ended: list[str] = []
        for row in rows:
            seq, command_type, session_id = row[0], row[1], UUID(str(row[2]))
            body = _opened(controller_id, seq, row[3])
            if command_type in START_TYPES and not _may_start(session_id, body, row):
                ended.append(str(session_id))
            elif body is not None:
                messages.append(msgspec.structs.replace(decode_from_server.decode(body), epoch=epoch))
    return messages, ended


def _opened(controller_id: UUID, seq: int, sealed: bytes | memoryview | None) -> bytes | None:
    """The command's frame; None, and the command refused, if no key opens it."""
    try:
        return open_sealed(sealed or b"")
    except InvalidToken:
        logger.error("command %d of controller %s cannot be decrypted: is a key missing from HOLDLINE_ENCRYPTION_KEYS?", seq, controller_id)
        ControllerCommand.objects.filter(controller_id=controller_id, seq=seq).update(
            settled_at=clock.now(), body=None, failure_code="UNREADABLE", failure_message="the server lost the key of this command"
        )
        return None


def _may_start(session_id: UUID, body: bytes | None, row: Sequence[Any]) -> bool:
    """The session is handed over (SENT), unless it is over or its START is too old: then it never starts."""
    if body is not None and not _is_expired(row):
        with connection.cursor() as cursor:
            cursor.execute(_HAND_OVER, [SessionState.SENT.value, as_parameter(session_id), SessionState.PENDING.value])
            is_handed_over = cursor.rowcount == 1
        return is_handed_over or CommandSession.objects.filter(id=session_id, state=SessionState.SENT).exists()
    session = CommandSession.objects.select_for_update(no_key=True).get(id=session_id)
    if session.state in (SessionState.PENDING, SessionState.SENT):
        code, message = ("EXPIRED", "the host did not take the command in time") if body else ("START_FAILED", "the server lost its key")
        # A host that took it before and comes back with a running program is told to terminate it.
        end_session(session, SessionState.EXPIRED, actor="server", failure_code=code, failure_message=message)
    return False


def _is_expired(row: Sequence[Any]) -> bool:
    expires_at = as_time(row[4])
    return expires_at is not None and expires_at <= clock.now()
