"""``request_id``: a retry of a call finds the outcome of the first try, and does nothing again.

A call that had no effect is not a first try. A call that was refused before its transaction ended
leaves no row. A start that surely began nothing is forgotten when it is repeated. After a restore
of the database, an id without a row may belong to a call that was made before it: see ``ages``.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, TypeVar
from uuid import UUID

from django.db.models import QuerySet
from django.utils.crypto import salted_hmac

from controller_client.protocol.session_state import SessionState
from projects.accounts import ages
from projects.errors.calls import RequestIdReused
from projects.models import ActionRequest, Approval
from projects.output.result import Result

Answer = TypeVar("Answer", bound=Result)
NEVER_BEGAN: Final = (SessionState.START_FAILED.value, SessionState.EXPIRED.value)
"""The states of a session whose start began nothing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Done:
    """The outcome of the first call with a ``request_id``."""

    session_id: UUID
    from_offset: int = 0
    input_seq: int | None = None
    command_seq: int | None = None


@dataclass(frozen=True, slots=True)
class Request:
    """An action of a caller, with its ``request_id`` and the fingerprint of its body."""

    project_id: UUID
    request_id: UUID
    action: str
    digest: str

    def earlier(self) -> Done | None:
        """The outcome of an earlier call with this id; None for a first call.

        Runs inside the transaction of the action. Raises RequestIdReused for another body, and
        RequestNotKnown after a restore.
        """
        row = self._earlier_row()
        if row is None:
            return None
        if row.session_id is None:
            raise RequestIdReused
        return Done(
            session_id=row.session_id,
            from_offset=row.from_offset,
            input_seq=row.input_seq,
            command_seq=row.command_seq,
        )

    def earlier_start(self) -> Done | None:
        """The outcome of an earlier start with this id; None for a first try.

        A start that surely began nothing is forgotten, so that its repeat is a new try.
        """
        done = self.earlier()
        if done and self._rows().filter(session__state__in=NEVER_BEGAN).delete()[0]:
            mine = Approval.objects.filter(project_id=self.project_id, request_id=self.request_id)
            mine.update(used_at=None)
            return None
        return done

    def earlier_answer(self, kind: type[Answer]) -> Answer | None:
        """The answer of an action on a monitor under this id; None if there is none.

        Raises RequestIdReused for another body.
        """
        row = self._earlier_row()
        return None if row is None else kind.model_validate(row.answer)

    def record(self, done: Done) -> None:
        """Record the outcome. Raises IntegrityError if another transaction was first."""
        row = self._row()
        row.session_id = done.session_id
        row.input_seq = done.input_seq
        row.from_offset = done.from_offset
        row.command_seq = done.command_seq
        row.save(force_insert=True)

    def record_answer(self, monitor_id: int, answer: Result) -> None:
        """Record the answer of an action on a monitor. Raises IntegrityError as ``record`` does."""
        row = self._row()
        row.monitor_id = monitor_id
        row.answer = answer.model_dump(mode="json")
        row.save(force_insert=True)

    def _row(self) -> ActionRequest:
        return ActionRequest(
            project_id=self.project_id,
            request_id=self.request_id,
            action=self.action,
            body_digest=self.digest,
        )

    def _rows(self) -> QuerySet[ActionRequest]:
        return ActionRequest.objects.filter(project_id=self.project_id, request_id=self.request_id)

    def _earlier_row(self) -> ActionRequest | None:
        row = self._rows().first()
        if row is not None and (row.action, row.body_digest) != (self.action, self.digest):
            raise RequestIdReused
        if row is None:
            ages.require_known(self.request_id)
        return row


def request_for(
    project_id: UUID,
    request_id: UUID | None,
    action: str,
    body: Mapping[str, object],
) -> Request | None:
    """The request of a call; None for a call without ``request_id``.

    The fingerprint is keyed: a plain hash of a typed password could be guessed.
    """
    if request_id is None:
        return None
    canonical = json.dumps(body, sort_keys=True, default=str)
    return Request(
        project_id,
        request_id,
        action,
        salted_hmac("holdline.request", canonical, algorithm="sha256").hexdigest(),
    )
