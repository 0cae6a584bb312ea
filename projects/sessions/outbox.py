"""The outbox: commands for controllers.

A command is a row, written in the transaction of the action that wants it. Its body is encrypted,
because it may hold typed text.
"""

from datetime import datetime
from typing import Final
from uuid import UUID

from django.db import connection

from controller_client.protocol import codec
from controller_client.protocol.messages import (
    PauseLifetime,
    Resize,
    RunCommand,
    SendInput,
    StartInteractiveCmd,
    TerminateCmd,
)
from projects.models import Controller
from projects.storage import clock
from projects.storage.columns import as_parameter, time_as_parameter
from projects.storage.sealing import seal

OutboxMessage = StartInteractiveCmd | RunCommand | SendInput | TerminateCmd | Resize | PauseLifetime
START_TYPES: Final = ("START_INTERACTIVE_CMD", "RUN_COMMAND")
"""Types of the commands that begin a session. They expire, and are withdrawn with their session."""

# Written out because they run in every turn: the ORM takes five times as long to build them as the
# database to execute them.
_ENQUEUE: Final = """
INSERT INTO projects_controllercommand
    (controller_id, session_id, seq, type, input_seq, body, created_at, expires_at, token_id,
     is_sent_again, failure_code, failure_message)
VALUES (%s, %s, %s, %s, %s, %s, %s, %s, %s, FALSE, '', '')
"""
_ALLOCATE: Final = """
UPDATE projects_controller SET last_command_seq = last_command_seq + 1 WHERE id = %s
RETURNING last_command_seq
"""


def enqueue(
    *,
    controller_id: UUID,
    session_id: UUID,
    message: OutboxMessage,
    expires_at: datetime | None = None,
    token_id: UUID | None = None,
) -> None:
    """Put a command into the outbox, in the transaction that allocated its ``message.seq``.

    ``token_id`` is the token of the caller; None for the server itself.
    """
    values = [
        as_parameter(controller_id),
        as_parameter(session_id),
        message.seq,
        type(message).__struct_config__.tag,
        message.input_seq if isinstance(message, SendInput) else None,
        seal(codec.encode(message)),
        time_as_parameter(clock.now()),
        time_as_parameter(expires_at),
        None if token_id is None else as_parameter(token_id),
    ]
    with connection.cursor() as cursor:
        cursor.execute(_ENQUEUE, values)


def allocate_seq(controller_id: UUID) -> int:
    """Take the next number of the controller's outbox. Numbers have no holes.

    The controller is locked until the transaction ends. Raises Controller.DoesNotExist for a
    controller that is gone.
    """
    with connection.cursor() as cursor:
        cursor.execute(_ALLOCATE, [as_parameter(controller_id)])
        row = cursor.fetchone()
    if row is None:
        raise Controller.DoesNotExist
    seq: int = row[0]
    return seq
