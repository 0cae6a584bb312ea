"""The outbox and the doorbells.

A command for a controller is a row, written in the transaction of the action that wants it; its body is encrypted, as it may
hold typed text. A doorbell is a message (``projects.exchange``) that only says "look again": it may be lost, doubled or late, so everybody
who waits for one also looks once per ``conf.safety_net_seconds``, and nothing but latency depends on it.
"""

import asyncio
from datetime import UTC, datetime
from types import TracebackType
from typing import Any, Final, Self
from uuid import UUID

from django.db import connection
from django.utils import timezone

from controller_client.protocol import codec
from controller_client.protocol.messages import Resize, RunCommand, SendInput, StartInteractiveCmd, TerminateCmd
from projects import clock
from projects.conf import conf
from projects.encryption import seal
from projects.exchange import exchange
from projects.models import Controller

OutboxMessage = StartInteractiveCmd | RunCommand | SendInput | TerminateCmd | Resize
START_TYPES: Final = ("START_INTERACTIVE_CMD", "RUN_COMMAND")
"""Types of the commands that begin a session: they expire, and are withdrawn with it."""

# ---- outbox ----------------------------------------------------------------------------------------------------------


# Written out because they run in every turn: the ORM takes five times as long to build them as the database to execute them.
_ENQUEUE: Final = """
INSERT INTO projects_controllercommand
    (controller_id, session_id, seq, type, input_seq, body, created_at, expires_at, token_id, failure_code, failure_message)
VALUES (%s, %s, %s, %s, %s, %s, %s, %s, %s, '', '')
"""
_ALLOCATE: Final = """
UPDATE projects_controller SET last_command_seq = last_command_seq + 1 WHERE id = %s
RETURNING last_command_seq, name, lease_expires_at
"""


def enqueue(
    *,
    controller_id: UUID,
    session_id: UUID,
    message: OutboxMessage,
    expires_at: datetime | None = None,
    token_id: UUID | None = None,
) -> None:
    """Puts the command into the outbox, under ``message.seq``; inside the transaction that allocated it. ``token_id``: whose call it is."""
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


def allocate_seq(controller_id: UUID) -> tuple[int, str, datetime | None]:
    """(next dense seq of the controller's outbox, its name, end of its lease); locks the controller until the transaction ends.

    Raises Controller.DoesNotExist for a controller that is gone.
    """
    with connection.cursor() as cursor:
        cursor.execute(_ALLOCATE, [as_parameter(controller_id)])
        row = cursor.fetchone()
    if row is None:
        raise Controller.DoesNotExist
    return row[0], row[1], as_time(row[2])


def as_parameter(value: UUID) -> Any:
    """A uuid as this database stores it, for statements the ORM cannot express (UPDATE … RETURNING)."""
    return Controller._meta.pk.get_db_prep_value(value, connection)  # noqa: SLF001


def time_as_parameter(value: datetime | None) -> Any:
    """A time as this database stores it."""
    return connection.ops.adapt_datetimefield_value(value)


def as_time(value: Any) -> datetime | None:
    """A time out of such a statement: SQLite gives UTC without saying so, as text or, from a column it knows, as a naive datetime."""
    if value is None:
        return None
    moment = datetime.fromisoformat(value) if isinstance(value, str) else value
    return timezone.make_aware(moment, UTC) if timezone.is_naive(moment) else moment


# ---- doorbells -------------------------------------------------------------------------------------------------------


def session_group(session_id: UUID | str) -> str:
    """Rung when a session advanced."""
    return f"session.{session_id}"


def controller_group(controller_id: UUID | str) -> str:
    """Rung when a controller's outbox has something new."""
    return f"controller.{controller_id}"


def question_group(question_id: UUID | str) -> str:
    """Rung when a question about a file was answered."""
    return f"question.{question_id}"


def files_group(controller_id: UUID | str) -> str:
    """Rung when there is a new question about a controller's files."""
    return f"files.{controller_id}"


async def ring_session(session_id: UUID | str) -> None:
    """Wakes who waits for the session. Waits for nothing and never raises, like the others."""
    exchange().ring(session_group(session_id))


async def ring_controller(controller_id: UUID | str) -> None:
    """Wakes the connection that serves the controller: one, but for moments after it moved, which the safety net covers."""
    exchange().ring_one(controller_group(controller_id))


async def ring_files(controller_id: UUID | str) -> None:
    """Wakes the connection that asks the controller."""
    exchange().ring_one(files_group(controller_id))


async def ring_question(question_id: UUID | str) -> None:
    """Wakes who waits for the answer to a question."""
    exchange().ring(question_group(question_id))


class Doorbell:
    """Hears one group while it is entered: ``async with session_doorbell(id) as bell: await bell.wait(timeout)``.

    Rings that come between two waits are kept as one. Where none gets through every wait takes its timeout, that is all.
    """

    def __init__(self, group: str, session_id: UUID | str | None = None) -> None:
        self._group = group
        self.session_id = session_id
        self._rung = asyncio.Event()

    async def __aenter__(self) -> Self:
        exchange().join(self._group, self._rung)
        return self

    async def __aexit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        exchange().leave(self._group, self._rung)

    async def rung(self) -> None:
        """Returns when it rings: for work that the safety net of the process looks for (``projects.safety_net``)."""
        await self._rung.wait()
        self._rung.clear()

    async def wait(self, timeout: float) -> bool:
        """True as soon as it rings, False after ``timeout`` seconds or the safety net, whichever is shorter: look again either way."""
        if not self._rung.is_set():
            try:
                async with asyncio.timeout(max(0.0, min(timeout, conf.safety_net_seconds))):
                    await self._rung.wait()
            except TimeoutError:
                return False
        self._rung.clear()
        return True


def session_doorbell(session_id: UUID | str) -> Doorbell:
    """Hears when the session advances."""
    return Doorbell(session_group(session_id), session_id)


def controller_doorbell(controller_id: UUID | str) -> Doorbell:
    """Hears when the controller's outbox has something new."""
    return Doorbell(controller_group(controller_id))
