"""The outbox and the doorbells.

A command for a controller is a row, written in the transaction of the action that wants it; its body is encrypted, as it may
hold typed text. A doorbell is a channel-layer message that only says "look again": it may be lost, doubled or late, so everybody
who waits for one also looks once per ``conf.safety_net_seconds``, and nothing but latency depends on it.
"""

import asyncio
import logging
from datetime import UTC, datetime
from types import TracebackType
from typing import Any, Final, Self
from uuid import UUID
from weakref import WeakKeyDictionary

from channels.layers import get_channel_layer
from django.db import connection
from django.utils import timezone

from controller_client.protocol import codec
from controller_client.protocol.messages import Resize, RunCommand, SendInput, StartInteractiveCmd, TerminateCmd
from projects import metrics
from projects.conf import conf
from projects.encryption import seal
from projects.models import Controller

logger = logging.getLogger(__name__)

OutboxMessage = StartInteractiveCmd | RunCommand | SendInput | TerminateCmd | Resize
START_TYPES: Final = ("START_INTERACTIVE_CMD", "RUN_COMMAND")
"""Types of the commands that begin a session: they expire, and are withdrawn with it."""
DOORBELL: Final = {"type": "doorbell"}


# ---- outbox ----------------------------------------------------------------------------------------------------------


# Written out because they run in every turn: the ORM takes five times as long to build them as the database to execute them.
_ENQUEUE: Final = """
INSERT INTO projects_controllercommand
    (controller_id, session_id, seq, type, input_seq, body, created_at, expires_at, failure_code, failure_message)
VALUES (%s, %s, %s, %s, %s, %s, %s, %s, '', '')
"""
_ALLOCATE: Final = """
UPDATE projects_controller SET last_command_seq = last_command_seq + 1 WHERE id = %s
RETURNING last_command_seq, name, lease_expires_at
"""


def enqueue(*, controller_id: UUID, session_id: UUID, message: OutboxMessage, expires_at: datetime | None = None) -> None:
    """Puts the command into the outbox, under ``message.seq``; inside the transaction that allocated it."""
    values = [
        as_parameter(controller_id),
        as_parameter(session_id),
        message.seq,
        type(message).__struct_config__.tag,
        message.input_seq if isinstance(message, SendInput) else None,
        seal(codec.encode(message)),
        time_as_parameter(timezone.now()),
        time_as_parameter(expires_at),
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
    """Wakes who waits for the session. Never raises."""
    await _ring(session_group(session_id))


async def ring_controller(controller_id: UUID | str) -> None:
    """Wakes the connection that serves the controller. Never raises."""
    await _ring(controller_group(controller_id))


async def ring_files(controller_id: UUID | str) -> None:
    """Wakes the connection that asks the controller. Never raises."""
    await _ring(files_group(controller_id))


async def ring_question(question_id: UUID | str) -> None:
    """Wakes who waits for the answer to a question. Never raises."""
    await _ring(question_group(question_id))


async def _ring(group: str) -> None:
    try:
        await get_channel_layer().group_send(group, DOORBELL)
    except Exception as error:  # noqa: BLE001 - a layer may raise anything; the safety net covers it
        metrics.DOORBELLS_FAILED.inc()
        logger.warning("doorbell not rung: %s", type(error).__name__)


class Doorbell:
    """Hears one group while it is entered: ``async with session_doorbell(id) as bell: await bell.wait(timeout)``.

    Rings that come between two waits are kept as one. With a broken layer every wait takes its timeout, that is all.
    """

    def __init__(self, group: str, session_id: UUID | str | None = None) -> None:
        self._group = group
        self.session_id = session_id
        self._rung = asyncio.Event()
        self._listener: asyncio.Task[None] | None = None
        self._channel: str | None = None

    async def __aenter__(self) -> Self:
        await self._listen()
        return self

    async def __aexit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        await self._unlisten()

    async def wait(self, timeout: float) -> bool:
        """True as soon as it rings, False after ``timeout`` seconds or the safety net, whichever is shorter: look again either way."""
        if not self._rung.is_set():
            try:
                async with asyncio.timeout(max(0.0, min(timeout, conf.safety_net_seconds))):
                    await self._rung.wait()
            except TimeoutError:
                # The layer may have forgotten us (expiry, restart); joining twice is harmless.
                await self._rejoin()
                return False
        self._rung.clear()
        return True

    async def _listen(self) -> None:
        try:
            layer = get_channel_layer()
            await _anchor(layer)
            self._channel = await layer.new_channel()
            await layer.group_add(self._group, self._channel)
        except Exception as error:  # noqa: BLE001
            logger.warning("doorbell not heard: %s", type(error).__name__)
            return
        # One receive for the whole wait: cancelling a receive of the Redis layer unsubscribes its channel.
        self._listener = asyncio.create_task(self._hear(layer, self._channel), name=f"doorbell {self._group}")

    async def _hear(self, layer: Any, channel: str) -> None:
        try:
            while True:
                await layer.receive(channel)
                self._rung.set()
        except Exception as error:  # noqa: BLE001
            logger.warning("doorbell lost: %s", type(error).__name__)

    async def _rejoin(self) -> None:
        if self._listener is None or self._listener.done():
            await self._unlisten()
            await self._listen()
            return
        try:
            await get_channel_layer().group_add(self._group, self._channel)
        except Exception as error:  # noqa: BLE001
            logger.warning("doorbell not joined again: %s", type(error).__name__)

    async def _unlisten(self) -> None:
        channel, self._channel = self._channel, None
        listener, self._listener = self._listener, None
        if listener is not None:
            listener.cancel()
        if channel is None:
            return
        leaving = asyncio.create_task(_leave(self._group, channel), name=f"leave {self._group}")
        # Whoever waits may be being cancelled, again and again; leaving must happen all the same.
        _leaving.add(leaving)
        leaving.add_done_callback(_leaving.discard)
        await asyncio.shield(leaving)


_anchored: "WeakKeyDictionary[asyncio.AbstractEventLoop, Any]" = WeakKeyDictionary()


async def _anchor(layer: Any) -> None:
    """Keeps one channel of the layer for good: with none, the Redis layer's receiver naps for 0.1 s before it hears a new one."""
    loop = asyncio.get_running_loop()
    if _anchored.get(loop) is not layer:
        await layer.new_channel()
        _anchored[loop] = layer


_leaving: set[asyncio.Task[None]] = set()


async def _leave(group: str, channel: str) -> None:
    try:
        await get_channel_layer().group_discard(group, channel)
    except Exception as error:  # noqa: BLE001
        logger.warning("doorbell not left: %s", type(error).__name__)


def session_doorbell(session_id: UUID | str) -> Doorbell:
    """Hears when the session advances."""
    return Doorbell(session_group(session_id), session_id)


def controller_doorbell(controller_id: UUID | str) -> Doorbell:
    """Hears when the controller's outbox has something new."""
    return Doorbell(controller_group(controller_id))
