"""Errors of a caller without a valid credential, right or approval for a call."""

from typing import Final
from uuid import UUID

from projects.errors.base import (
    Conflict,
    ControllerActionError,
    ErrorBody,
    Forbidden,
    NotFound,
    Unavailable,
)


class Unauthenticated(ControllerActionError):
    """No valid credential was shown."""

    code = "UNAUTHENTICATED"
    status = 401
    hint = (
        "Send 'Authorization: Bearer <API token>' with a token that has not expired or been "
        "revoked."
    )

    def __init__(self, reason: str = "a valid API token is required", hint: str = "") -> None:
        super().__init__(reason)
        self.hint = hint or self.hint


class ScopeMissing(Forbidden):
    """The caller's token lacks the scope that the call needs."""

    code = "SCOPE_MISSING"

    def __init__(self, scope: str) -> None:
        self.scope = scope
        self.hint = f"Use a token with the scope {scope}."
        super().__init__(f"this needs the scope {scope}")


class ApprovalPending(Unavailable):
    """A person was asked about the call and has not answered yet. Nothing was done."""

    code = "APPROVAL_PENDING"

    def __init__(self, approval_id: int, link: str, request_id: UUID) -> None:
        self.approval_id, self.link, self.request_id = approval_id, link, request_id
        self.hint = (
            f"A person answers at {link}: tell your user. Repeat the call with the same arguments "
            f"and the request id {request_id} to wait on; it is carried out once. Do not try to do "
            "the same in another way."
        )
        super().__init__(f"this call waits for a person's approval (#{approval_id})")

    def body(self) -> ErrorBody:
        """The error with what a repeat of the call needs."""
        return {
            **super().body(),
            "approval_id": self.approval_id,
            "approval_url": self.link,
            "request_id": str(self.request_id),
        }


class ApprovalDenied(Forbidden):
    """A person denied the call. Nothing was done."""

    code = "DENIED_BY_OPERATOR"
    hint = (
        "Do not try to do the same in another way. Go on without it, or say that it cannot be "
        "done and why."
    )

    def __init__(self, reason: str) -> None:
        super().__init__(f"a person denied this call{f': {reason}' if reason else ''}")


class ApprovalExpired(Forbidden):
    """Nobody approved the call in time, or it was not begun in time. Nothing was done."""

    code = "APPROVAL_EXPIRED"
    hint = "It counts as denied. To ask again, make the call under a new request id."

    def __init__(self, approval_id: int) -> None:
        super().__init__(f"the time of approval #{approval_id} is over")


class ApprovalLimitReached(Conflict):
    """The project has as many open questions as it may have. Nothing was done."""

    code = "APPROVAL_LIMIT_REACHED"
    retryable = True

    def __init__(self, limit: int) -> None:
        self.hint = "Wait until a person has answered some of them, then repeat the call."
        super().__init__(f"{limit} calls of this project wait for an approval already")


class ApprovalRequired(Forbidden):
    """The caller's calls need an approval, and this call did not ask for one."""

    code = "APPROVAL_REQUIRED"
    hint = "Make the call through its tool, which asks."

    def __init__(self) -> None:
        super().__init__("a person has to approve the calls of this caller")


class ChangedSinceApproval(Conflict):
    """The call was approved, and what it is about is not what the person saw. Nothing was done."""

    code = "CHANGED_SINCE_APPROVAL"
    hint = "Look at it again. To ask again, make the call under a new request id."

    def __init__(self, change: str) -> None:
        super().__init__(f"since this call was approved, {change}")


class CallNotShown(Conflict):
    """A call that no person can be shown was to be approved. Nothing was changed."""

    code = "CALL_NOT_SHOWN"
    hint = "Deny it. The server needs the key that it had when the call was made."

    def __init__(self, approval_id: int) -> None:
        super().__init__(f"the call of approval #{approval_id} cannot be decrypted")


class ApprovalNotFound(NotFound):
    """There is no approval with this number."""

    code = "APPROVAL_NOT_FOUND"
    hint = "manage.py answer_approval lists the pending approvals."

    def __init__(self, approval_id: int) -> None:
        super().__init__(f"there is no request for approval #{approval_id}")


class OwnCall(Forbidden):
    """The person asked for the call themselves, and the project wants four eyes."""

    code = "OWN_CALL"
    hint = "Somebody else has to answer."

    def __init__(self) -> None:
        super().__init__("you asked for this call yourself")


APPROVAL_ERRORS: Final = (
    ApprovalPending,
    ApprovalDenied,
    ApprovalExpired,
    ApprovalLimitReached,
    ChangedSinceApproval,
)
"""The errors that a tool may answer with if its calls can need an approval."""
