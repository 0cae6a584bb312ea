"""The outbox as the connection of one controller sees it: commands to send, answers to record."""

import logging
from collections.abc import Collection
from datetime import datetime
from typing import Final, NamedTuple
from uuid import UUID

import msgspec
from django.db import connection, transaction

from controller_client.protocol.codec import decode_from_server
from controller_client.protocol.messages import (
    CommandAck,
    Failure,
    FromServer,
    InputAck,
    RunCommand,
    StartInteractiveCmd,
)
from controller_client.protocol.session_state import SessionState
from projects.errors.uncertain import ENDED_MEANWHILE, INPUT_UNCONFIRMED
from projects.link.inbound.refusals import DatabaseRestored
from projects.link.inbound.stored_text import input_failure, stored_failure
from projects.models import CommandSession, ControllerCommand
from projects.output.recording.events import NewEvent, size_class
from projects.sessions.outbox import START_TYPES
from projects.sessions.state import end_lost, end_session, hand_over
from projects.storage import clock
from projects.storage.columns import as_json, as_parameter, time_as_parameter
from projects.storage.rows import execute, fetch_rows
from projects.storage.sealing import open_or_none

logger = logging.getLogger(__name__)

COMMANDS_PER_TAKE: Final = 32
_KEY_LOST: Final = "the server lost the key of this command"

# ---- to send -------------------------------------------------------------------------------------

# A new connection sends again what the one before it sent and nobody settled: every command is safe
# to repeat. A command of this epoch that this connection has not sent was handed over to it, and
# has not arrived.
#
# The controller is locked first, as a HELLO locks it. A connection that is being replaced then
# waits for the HELLO and takes nothing, and a HELLO sees everything that was taken before it. A
# command that is settled meanwhile is looked at again, and left.
_TAKE: Final = """
UPDATE projects_controllercommand
SET is_sent_again = (is_sent_again OR COALESCE(sent_epoch < %s, FALSE)), sent_epoch = %s
WHERE settled_at IS NULL AND id IN (
    SELECT id FROM projects_controllercommand
    WHERE controller_id = %s AND settled_at IS NULL
        AND (sent_epoch IS NULL OR sent_epoch < %s OR (sent_epoch = %s AND seq > %s)){but}
    ORDER BY seq LIMIT %s
) AND EXISTS (SELECT 1 FROM projects_controller WHERE id = %s AND epoch = %s{lock})
RETURNING seq, type, session_id, body, expires_at
"""
_LAST: Final = "SELECT last_command_seq FROM projects_controller WHERE id = %s"
_BUT_INPUTS: Final = " AND NOT (type = 'SEND_INPUT' AND session_id IN ({places}))"
_BUT_SESSIONS: Final = " AND NOT session_id IN ({places})"


class _Taken(NamedTuple):
    """One command of the outbox, as ``_TAKE`` returns it; ``body`` is sealed."""

    seq: int
    type: str
    session_id: UUID
    body: bytes | memoryview | None
    expires_at: datetime | None

    @property
    def is_expired(self) -> bool:
        return self.expires_at is not None and self.expires_at <= clock.now()


def take_commands(
    controller_id: UUID,
    epoch: int,
    *,
    sent_up_to: int = 0,
    missing_after: int | None = None,
    awaited: Collection[UUID] = (),
    found: Collection[UUID] = (),
    unnamed: Collection[UUID] = (),
) -> tuple[list[FromServer], list[str]]:
    """Take the next commands out of the outbox and mark them as sent under ``epoch``.

    Returns the messages to send, in order, and the ids of sessions to ring: their START came too
    late, or no key opens their command. These are at most COMMANDS_PER_TAKE; if it is as many,
    there may be more. A connection that a newer one has replaced gets nothing.

    ``sent_up_to`` is the number up to which this connection was given all commands. Raises
    DatabaseRestored for another command under such a number, and marks nothing. Inputs of
    ``awaited`` sessions stay in the outbox, and so do all commands of ``unnamed`` ones. Inputs of
    ``found`` sessions stayed there before, so they may have a lower number. Commands after number
    ``missing_after`` that were handed over to this connection have not arrived, and are taken as
    well.
    """
    key = as_parameter(controller_id)
    but = _but(_BUT_INPUTS, awaited) + _but(_BUT_SESSIONS, unnamed)
    lock = " FOR NO KEY UPDATE" if connection.features.has_select_for_update else ""
    kept_back = [as_parameter(session_id) for session_id in (*awaited, *unnamed)]
    wanted = [epoch, epoch, missing_after, *kept_back, COMMANDS_PER_TAKE]
    with transaction.atomic():
        commands = fetch_rows(
            _Taken, _TAKE.format(but=but, lock=lock), [epoch, epoch, key, *wanted, key, epoch]
        )
        if any(
            command.seq <= sent_up_to
            and not (command.type == "SEND_INPUT" and command.session_id in found)
            for command in commands
        ):
            raise DatabaseRestored
        messages: list[FromServer] = []
        settled: list[str] = []
        for command in sorted(commands, key=lambda command: command.seq):
            message = _message(controller_id, command, epoch)
            if command.type in START_TYPES:
                message = _start_to_send(command, message)
            if message is None:
                settled.append(str(command.session_id))
            else:
                messages.append(message)
    return messages, settled


def _but(condition: str, session_ids: Collection[UUID]) -> str:
    """The condition that leaves out commands of these sessions; empty without sessions."""
    return condition.format(places=", ".join(["%s"] * len(session_ids))) if session_ids else ""


def last_number(controller_id: UUID) -> int:
    """The number of the last command that is committed for the controller.

    A command with a lower number is committed as well: each one locks its controller.
    """
    row = execute(_LAST, [as_parameter(controller_id)]).fetchone()
    return 0 if row is None else int(row[0])


def _message(controller_id: UUID, command: _Taken, epoch: int) -> FromServer | None:
    """The message of a command. None if no key opens it: the command is settled as failed.

    The command may have been sent before, when its key was there.
    """
    body = open_or_none(command.body or b"", f"command {command.seq} of host {controller_id}")
    if body is None:
        code = INPUT_UNCONFIRMED if command.type == "SEND_INPUT" else "UNREADABLE"
        ControllerCommand.objects.filter(controller_id=controller_id, seq=command.seq).update(
            settled_at=clock.now(), body=None, failure_code=code, failure_message=_KEY_LOST
        )
        return None
    return msgspec.structs.replace(decode_from_server.decode(body), epoch=epoch)


def _start_to_send(command: _Taken, start: FromServer | None) -> FromServer | None:
    """Hand a session over with its START (SENT). None if there is none to send: the session ended.

    A START that is too old and was never sent is never sent. A START that was sent before may have
    been taken by the host: it is sent again with no time left, which asks what became of it. A host
    that has the session says so, and a host that has not starts nothing any more.
    """
    is_fresh = start is not None and not command.is_expired
    if is_fresh and hand_over(command.session_id):
        return start
    session = CommandSession.objects.select_for_update(no_key=True).get(id=command.session_id)
    if session.state == SessionState.SENT:
        if isinstance(start, StartInteractiveCmd | RunCommand):
            return start if is_fresh else msgspec.structs.replace(start, ttl_seconds=0.0)
        end_lost(session, actor="server", note=_KEY_LOST)
    elif session.state == SessionState.PENDING:
        code, message = (
            ("EXPIRED", "the host did not take the command in time")
            if start
            else ("START_FAILED", _KEY_LOST)
        )
        end_session(
            session,
            SessionState.EXPIRED,
            actor="server",
            failure_code=code,
            failure_message=message,
        )
    return None


# ---- answered ------------------------------------------------------------------------------------

# An answer settles what it can be the answer to, and nothing else that has the same number in a
# database that was restored.
_SETTLE: Final = """
UPDATE projects_controllercommand
SET settled_at = %s, body = NULL, failure_code = %s, failure_message = %s
WHERE controller_id = %s AND seq = %s AND session_id = %s AND type {types} AND settled_at IS NULL
RETURNING type, event
"""
_EVENT_KINDS: Final = {"RESIZE": "resize", "PAUSE_LIFETIME": "lifetime"}
_STARTS: Final = ", ".join(f"'{name}'" for name in START_TYPES)
_SETTLE_START: Final = _SETTLE.format(types=f"IN ({_STARTS})")
_SETTLE_COMMAND: Final = _SETTLE.format(types=f"NOT IN ({_STARTS}, 'SEND_INPUT')")
# The answer of the host decides an input even after the session's end. A host whose holder is gone
# knows nothing of an input that it was sent before, so its refusal then says nothing of that input.
_SETTLE_INPUT: Final = """
UPDATE projects_controllercommand
SET settled_at = %s, body = NULL,
    failure_message = CASE
        WHEN is_sent_again AND %s IN ('SESSION_ENDED', 'SESSION_NOT_FOUND') THEN %s ELSE %s END,
    failure_code = CASE
        WHEN is_sent_again AND %s IN ('SESSION_ENDED', 'SESSION_NOT_FOUND') THEN %s ELSE %s END
WHERE controller_id = %s AND seq = %s AND session_id = %s AND input_seq = %s
    AND (settled_at IS NULL OR failure_code = %s)
RETURNING event
"""


def settle_start(controller_id: UUID, session_id: UUID, seq: int) -> None:
    """Record that the host answered the START with this number in its outbox."""
    _settle(_SETTLE_START, controller_id, session_id, seq, None)


def settle_command(controller_id: UUID, session_id: UUID, ack: CommandAck) -> NewEvent | None:
    """Record the answer to a command that is neither a START nor an input.

    Returns the event that the answer is; None for a repeat, a failure or a signal.
    """
    row = _settle(_SETTLE_COMMAND, controller_id, session_id, ack.command_seq, ack.failure)
    kind = None if row is None or ack.failure is not None else _EVENT_KINDS.get(row[0])
    if row is None or kind is None:
        return None
    actor, detail = _event_of(row[1])
    return NewEvent(session_id, kind, ack.offset, actor, detail, ack.at)


def settle_input(controller_id: UUID, session_id: UUID, ack: InputAck) -> NewEvent | None:
    """Record whether an input was typed. Returns the event that this is; None for a repeat."""
    code, text = stored_failure(input_failure(ack))
    values = [code, ENDED_MEANWHILE, text, code, INPUT_UNCONFIRMED, code]
    keys = [as_parameter(controller_id), ack.command_seq, as_parameter(session_id), ack.input_seq]
    now = time_as_parameter(clock.now())
    row = execute(_SETTLE_INPUT, [now, *values, *keys, INPUT_UNCONFIRMED]).fetchone()
    if row is None:
        return None
    actor, detail = _event_of(row[0])
    is_hidden = bool(detail.get("hidden"))
    detail["at_most_bytes"] = size_class(ack.accepted_bytes, is_hidden=is_hidden)
    if code:
        detail["failure"] = code
    return NewEvent(session_id, "input", ack.offset, actor, detail, ack.at)


def _event_of(stored: str | dict[str, object] | None) -> tuple[str, dict[str, object]]:
    """The actor and the detail that were stored with a command."""
    detail = dict(as_json(stored) or {})
    return str(detail.pop("actor", "")), detail


def _settle(
    statement: str, controller_id: UUID, session_id: UUID, seq: int, failure: Failure | None
) -> tuple[str, str | dict[str, object] | None] | None:
    keys = [as_parameter(controller_id), seq, as_parameter(session_id)]
    now = time_as_parameter(clock.now())
    row: tuple[str, str | dict[str, object] | None] | None = execute(
        statement, [now, *stored_failure(failure), *keys]
    ).fetchone()
    return row
