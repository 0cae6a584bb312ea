"""The outbox: commands for controllers.

A command is a row, written in the transaction of the action that wants it. Its body is encrypted,
because it may hold typed text.

If the connection of the controller lives in this process, the row says so from the start, and the
connection is handed the command after the commit (``projects.wakeups.serving``). Otherwise the
controller is rung, and its connection takes the command out of the outbox.
"""

import json
from collections.abc import Callable, Mapping
from datetime import datetime
from functools import partial
from typing import Final, NamedTuple
from uuid import UUID

from django.db import transaction

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
from projects.sessions.state import hand_over
from projects.storage import clock
from projects.storage.columns import as_parameter, time_as_parameter
from projects.storage.rows import execute, row_soon
from projects.storage.sealing import seal
from projects.storage.threads import after_result
from projects.wakeups import serving

OutboxMessage = StartInteractiveCmd | RunCommand | SendInput | TerminateCmd | Resize | PauseLifetime
START_TYPES: Final = ("START_INTERACTIVE_CMD", "RUN_COMMAND")
"""Types of the commands that begin a session. They expire, and are withdrawn with their session."""

# Written out because they run in every turn: the ORM takes five times as long to build them as the
# database to execute them. A connection that a newer one has replaced is handed nothing.
_ENQUEUE: Final = """
INSERT INTO projects_controllercommand
    (controller_id, session_id, seq, type, input_seq, body, created_at, expires_at, token_id,
     event, sent_epoch, is_sent_again, failure_code, failure_message)
VALUES (%s, %s, %s, %s, %s, %s, %s, %s, %s, %s,
    (SELECT epoch FROM projects_controller WHERE id = %s AND epoch = %s), FALSE, '', '')
RETURNING sent_epoch
"""
_ALLOCATE: Final = """
UPDATE projects_controller SET last_command_seq = last_command_seq + 1 WHERE id = %s
RETURNING last_command_seq
"""


class _Enqueued(NamedTuple):
    """The epoch of the connection that a new command is handed to; None without one."""

    sent_epoch: int | None


def enqueue(
    *,
    controller_id: UUID,
    session_id: UUID,
    message: OutboxMessage,
    expires_at: datetime | None = None,
    token_id: UUID | None = None,
    event: Mapping[str, object] | None = None,
) -> UUID | None:
    """Put a command into the outbox, in the transaction that allocated its ``message.seq``.

    ``token_id`` is the token of the caller; None for the server itself. ``event`` is the detail of
    the session event that the host's answer becomes, with its ``actor``. Returns the controller,
    which has to be rung; None if its connection is handed the command after the commit.
    """
    to_ring = enqueue_soon(
        controller_id=controller_id,
        session_id=session_id,
        message=message,
        expires_at=expires_at,
        token_id=token_id,
        event=event,
    )
    return to_ring()


def enqueue_soon(
    *,
    controller_id: UUID,
    session_id: UUID,
    message: OutboxMessage,
    expires_at: datetime | None = None,
    token_id: UUID | None = None,
    event: Mapping[str, object] | None = None,
) -> Callable[[], UUID | None]:
    """Do as ``enqueue`` does. The transaction has to call the function that is returned.

    That returns the controller to be rung, or sees to it that its connection gets the command.
    """
    epoch, served = serving.newest(controller_id) or (None, None)
    if served is None or not served.takes(message):
        epoch = None
    tag = str(type(message).__struct_config__.tag)
    values = [
        as_parameter(controller_id),
        as_parameter(session_id),
        message.seq,
        tag,
        message.input_seq if isinstance(message, SendInput) else None,
        seal(codec.encode(message)),
        time_as_parameter(clock.now()),
        time_as_parameter(expires_at),
        None if token_id is None else as_parameter(token_id),
        None if event is None else json.dumps(dict(event)),
        as_parameter(controller_id),
        epoch,
    ]
    enqueued = row_soon(_Enqueued, execute(_ENQUEUE, values))

    def to_ring() -> UUID | None:
        row = enqueued()
        if served is None or row is None or row.sent_epoch is None:
            return controller_id
        if tag in START_TYPES:
            hand_over(session_id)
        transaction.on_commit(partial(after_result, partial(served.hand_over, message)))
        return None

    return to_ring


def allocate_seq(controller_id: UUID) -> int:
    """Take the next number of the controller's outbox. Numbers have no holes.

    The controller is locked until the transaction ends. Raises Controller.DoesNotExist for a
    controller that is gone.
    """
    row = execute(_ALLOCATE, [as_parameter(controller_id)]).fetchone()
    if row is None:
        raise Controller.DoesNotExist
    seq: int = row[0]
    return seq
