"""``request_id``: a retry of a call finds what the first try did, and does nothing a second time."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from django.utils.crypto import salted_hmac

from projects.errors import RequestIdReused
from projects.models import ActionRequest


@dataclass(frozen=True, slots=True)
class Done:
    """What the first call with this ``request_id`` did."""

    session_id: UUID
    input_seq: int | None
    from_offset: int
    command_seq: int | None = None


@dataclass(frozen=True, slots=True)
class Request:
    """One action of a caller, and its body's fingerprint."""

    project_id: UUID
    request_id: UUID
    action: str
    digest: str

    def earlier(self) -> Done | None:
        """What was done under this id; inside the action's transaction. Raises RequestIdReused for another body."""
        row = (
            ActionRequest.objects.filter(project_id=self.project_id, request_id=self.request_id)
            .values_list("action", "body_digest", "session_id", "input_seq", "from_offset", "command_seq")
            .first()
        )
        if row is None:
            return None
        action, digest, session_id, input_seq, from_offset, command_seq = row
        if (action, digest) != (self.action, self.digest):
            raise RequestIdReused
        return Done(session_id, input_seq, from_offset, command_seq)

    def record(self, done: Done) -> None:
        """Notes what was done; IntegrityError if another transaction was first."""
        ActionRequest.objects.create(
            project_id=self.project_id,
            request_id=self.request_id,
            action=self.action,
            body_digest=self.digest,
            session_id=done.session_id,
            input_seq=done.input_seq,
            from_offset=done.from_offset,
            command_seq=done.command_seq,
        )


def request_for(project_id: UUID, request_id: UUID | None, action: str, body: Mapping[str, Any]) -> Request | None:
    """The request of a call; None without an id. The fingerprint is keyed: a plain hash of a typed password could be guessed."""
    if request_id is None:
        return None
    canonical = json.dumps(body, sort_keys=True, default=str)
    return Request(project_id, request_id, action, salted_hmac("holdline.request", canonical, algorithm="sha256").hexdigest())
