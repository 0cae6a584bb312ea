"""Repair what a database forgot that was restored, or that is a replica which was behind.

The host remembers more than the server then. Of every number that both sides keep, the higher one
counts, so that nothing new is taken for a repeat. The fate of a command that was lost with the
database is reported as not known. Each disagreement is an audit row. (docs/howto/backup.md)
"""

from collections import defaultdict
from collections.abc import Sequence
from datetime import datetime
from functools import cached_property
from itertools import islice
from typing import Final
from uuid import UUID

import msgspec
from django.db import connection
from django.db.models import Max

from controller_client.protocol import codec
from controller_client.protocol.messages import Hello, SendInput, SessionSummary, Stream, Welcome
from controller_client.protocol.session_state import ACTIVE_STATES, SessionState
from projects.audit.log import audit
from projects.errors.uncertain import INPUT_UNCONFIRMED
from projects.link.inbound.stored_text import stored_id
from projects.models import ActionRequest, CommandSession, ControllerCommand
from projects.models.accounts import MAX_LIFETIME_SECONDS
from projects.sessions.outbox import START_TYPES
from projects.sessions.state import add_session, hand_over
from projects.storage import clock
from projects.storage.sealing import open_or_none, seal

MAX_ADOPTED: Final = 256
"""The most active sessions with which a host may bring along sessions that are not known."""
EPOCHS_SKIPPED: Final = 1 << 20
"""The number of connections that a restored database may have forgotten, if its host names none."""
ADOPTED_COMMAND: Final = "(not known: the session was adopted from its host)"
ADOPTED_NOTE: Final = (
    "adopted: the server's database did not know it, as after a restore; its command is not known"
)
FORGOTTEN_NOTE: Final = (
    "the server's database is older than what the host saw: the program may have exited since"
)
_UNCONFIRMED: Final = (
    "the server's database was restored meanwhile: it is not known whether it was typed"
)
# A host that claims to be ahead by more than this is not believed: no host lives that long.
_MOST_AHEAD: Final = 1 << 40


def higher(ours: int, theirs: int) -> int:
    """The higher of our count and a host's, unless the host's is too high to be true."""
    return theirs if ours < theirs <= ours + _MOST_AHEAD else ours


def released_of(message: Hello, welcome: Welcome) -> dict[tuple[str, Stream], int]:
    """The offsets before which living holders have no output that the server still expects.

    The server had that output before a restore, or the holder dropped it.
    """
    first = {
        (summary.session_id, position.stream): position.first_offset
        for summary in message.sessions
        if summary.pid is not None
        for position in summary.streams
    }
    expected = [position for directive in welcome.sessions for position in directive.expected]
    keys = [((position.session_id, position.stream), position.offset) for position in expected]
    return {key: first[key] for key, offset in keys if first.get(key, 0) > offset}


class Restored:
    """The repair of one controller's rows, at a HELLO or when a silent holder is found.

    ``about`` is (project id, controller id). Rows that were made after ``since`` are newer than any
    restore.
    """

    def __init__(self, about: tuple[UUID, UUID], actor: str, *, since: datetime) -> None:
        self._project_id, self._controller_id = about
        self._actor = actor
        self._since = since

    @cached_property
    def _unsent_inputs(self) -> dict[UUID, list[ControllerCommand]]:
        """For each session of the host its inputs that no connection was given, in their order."""
        unsent: dict[UUID, list[ControllerCommand]] = defaultdict(list)
        mine = ControllerCommand.objects.filter(
            controller_id=self._controller_id, settled_at__isnull=True, sent_epoch__isnull=True
        )
        for command in mine.filter(type="SEND_INPUT").order_by("input_seq"):
            unsent[command.session_id].append(command)
        return unsent

    def audit(self, session_id: UUID | None, **detail: object) -> None:
        """Write one disagreement between the host and the database into the audit log."""
        action = "controller.restored" if session_id is None else "session.restored"
        audit(self._actor, action, (self._project_id, self._controller_id, session_id), detail)

    # ---- commands --------------------------------------------------------------------------------

    def ask_after_starts(self, last_seen_seq: int) -> None:
        """Expire the STARTs that the daemon has seen, although the database may say otherwise.

        An expired START starts nothing. It asks the host what became of it.
        """
        seen = ControllerCommand.objects.filter(
            controller_id=self._controller_id,
            type__in=START_TYPES,
            settled_at__isnull=True,
            seq__lte=last_seen_seq,
        )
        for command in seen:
            if command.sent_epoch is None and self._is_new(command):
                continue
            ControllerCommand.objects.filter(id=command.id).update(expires_at=clock.now())
            if hand_over(command.session_id):
                self.audit(command.session_id, start="sent before the restore")

    def _is_new(self, command: ControllerCommand) -> bool:
        """True if the command was surely made after any restore.

        Processes that share a database cannot tell.
        """
        return connection.vendor == "sqlite" and command.created_at >= self._since

    # ---- inputs ----------------------------------------------------------------------------------

    def catch_up(self, session: CommandSession, applied: int) -> None:
        """Renumber the inputs of a session whose host has applied inputs up to ``applied``.

        The next input gets the number after that, and no number is used for two inputs.
        """
        waiting = self._unsent_inputs.get(session.id, [])
        is_ahead = session.input_seq < higher(session.input_seq, applied)
        # No host applies an input that it was not sent. If the database has such a number as not
        # sent, the host applied another input that had the number before the restore.
        if not is_ahead and not any(
            (command.input_seq or 0) <= applied <= session.input_seq for command in waiting
        ):
            return
        unknown = [
            command
            for command in waiting
            if not self._is_new(command) and (command.input_seq or 0) <= applied
        ]
        kept = [command for command in waiting if command not in unknown]
        others = ControllerCommand.objects.filter(session=session, input_seq__isnull=False)
        others = others.exclude(id__in=[command.id for command in waiting])
        sent = others.filter(settled_at__isnull=True).aggregate(last=Max("input_seq"))["last"]
        base = max(applied, sent or 0)
        # Their numbers are taken away: an answer that the host repeats may be about the other input
        # that had the number.
        for command in unknown:
            ControllerCommand.objects.filter(id=command.id).update(
                settled_at=clock.now(),
                body=None,
                input_seq=None,
                failure_code=INPUT_UNCONFIRMED,
                failure_message=_UNCONFIRMED,
            )
        # Inputs that were withdrawn before they were sent: the host never hears of their numbers,
        # which other inputs get now.
        others.filter(settled_at__isnull=False, input_seq__gt=base).update(input_seq=None)
        # Backwards, so that each number is free before another input takes it.
        for number, command in reversed(list(enumerate(kept, start=base + 1))):
            _renumber(command, number)
        CommandSession.objects.filter(id=session.id).update(
            input_seq=base + len(kept), input_acked_seq=max(session.input_acked_seq, applied)
        )
        inputs = {
            "server": session.input_seq,
            "host": applied,
            "moved": len(kept),
            "unconfirmed": len(unknown),
        }
        self.audit(session.id, inputs=inputs)

    # ---- sessions --------------------------------------------------------------------------------

    def adopt(self, summaries: Sequence[SessionSummary]) -> list[CommandSession]:
        """Make rows for the sessions of a host that have no row.

        Sessions that have a row, even under another host, are left out, and so are all that would
        make more than MAX_ADOPTED active ones.
        """
        strangers = {
            session_id: summary
            for summary in summaries
            if (session_id := stored_id(summary.session_id)) is not None
        }
        known = CommandSession.objects.filter(id__in=list(strangers))
        for session_id in known.values_list("id", flat=True):
            del strangers[session_id]
        if not strangers:
            return []
        active = CommandSession.objects.filter(
            controller_id=self._controller_id, state__in=[s.value for s in ACTIVE_STATES]
        ).count()
        return [
            self._adopted(session_id, summary)
            for session_id, summary in islice(strangers.items(), max(0, MAX_ADOPTED - active))
        ]

    def _adopted(self, session_id: UUID, summary: SessionSummary) -> CommandSession:
        now = clock.now()
        is_running = summary.state == "running"
        has_pipes = any(position.stream == "stderr" for position in summary.streams)
        applied = higher(0, summary.input_seq)
        session = CommandSession(
            id=session_id,
            project_id=self._project_id,
            controller_id=self._controller_id,
            # A job, since a background session that no caller reads is ended, and no caller knows
            # of this one.
            kind=CommandSession.Kind.JOB if has_pipes else CommandSession.Kind.INTERACTIVE,
            io_mode=CommandSession.IoModeChoice.PIPE
            if has_pipes
            else CommandSession.IoModeChoice.PTY,
            command=ADOPTED_COMMAND,
            warning=ADOPTED_NOTE,
            notes=[ADOPTED_NOTE],
            # The host keeps the time. This lifetime is for a host that never comes back.
            lifetime_seconds=float(MAX_LIFETIME_SECONDS),
            created_at=now,
            started_at=now if is_running else None,
            pid=summary.pid,
            input_seq=applied,
            input_acked_seq=applied,
        )
        # The host has still to report the end of a program that is over.
        add_session(session, SessionState.RUNNING if is_running else SessionState.SENT)
        audit(
            self._actor,
            "session.adopt",
            (self._project_id, self._controller_id, session_id),
            {"state": summary.state, "inputs": applied},
        )
        return session

    def forgotten(self, session_id: UUID) -> None:
        """Note on a session that the host does not name that its program may have exited since.

        The database may be from before its end. The note is shown once the session is lost.
        """
        session = CommandSession.objects.get(id=session_id)
        if FORGOTTEN_NOTE not in session.notes:
            CommandSession.objects.filter(id=session_id).update(
                notes=[*session.notes, FORGOTTEN_NOTE]
            )
            self.audit(session_id, session="not on its host any more")

    def refuse(self, summary: SessionSummary) -> None:
        """Write into the audit log that a session of the host is not adopted, but ended there."""
        about = (self._project_id, self._controller_id, stored_id(summary.session_id))
        audit(self._actor, "session.refuse_unknown", about, {"state": summary.state})


def _renumber(command: ControllerCommand, number: int) -> None:
    if command.input_seq == number:
        return
    body = open_or_none(command.body or b"", f"input {command.seq} of session {command.session_id}")
    message = None if body is None else codec.decode_from_server.decode(body)
    # An input that no key opens keeps its place: it is settled as failed when it is to be sent.
    if message is None or isinstance(message, SendInput):
        body = command.body
        if message is not None:
            body = seal(codec.encode(msgspec.structs.replace(message, input_seq=number)))
        ControllerCommand.objects.filter(id=command.id).update(input_seq=number, body=body)
        ActionRequest.objects.filter(session_id=command.session_id, command_seq=command.seq).update(
            input_seq=number
        )
