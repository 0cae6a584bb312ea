"""Refusals that are about accounts: rates, enrolment, credentials.

Branches of the tree in ``projects.errors.base``.
"""

import math

from projects.errors.base import Conflict, ControllerActionError, ErrorBody, Forbidden


class RateLimited(ControllerActionError):
    """More than the rate allows.

    ``what`` is what was asked for too often. The earliest retry is after ``retry_after_seconds``.
    """

    code = "RATE_LIMITED"
    status = 429
    retryable = True

    def __init__(self, what: str, retry_after_seconds: float) -> None:
        self.retry_after_seconds = max(1, math.ceil(retry_after_seconds))
        self.hint = f"Nothing was done. Wait {self.retry_after_seconds} s, then try again."
        super().__init__(f"too much in too short a time: {what}")

    def body(self) -> ErrorBody:
        """The body with the seconds that the header Retry-After has over HTTP."""
        return {**super().body(), "retry_after_seconds": self.retry_after_seconds}


class EnrolmentRefused(Forbidden):
    """The code is unknown, used, expired or withdrawn. The error does not tell which."""

    code = "ENROLMENT_REFUSED"
    hint = "Ask for a new code: manage.py create_enrolment_code. A code works once, for 15 minutes."

    def __init__(self) -> None:
        super().__init__("this enrolment code is not valid")


class CredentialLimitReached(Conflict):
    """A controller may have two credentials at a time: one, and its replacement."""

    code = "CREDENTIAL_LIMIT_REACHED"
    hint = (
        "Restart the daemon, which then uses its newest credential, and rotate again. If the "
        "answer to a rotation was lost, rotate again after a minute. Or revoke the credential that "
        "is no longer used."
    )

    def __init__(self, limit: int) -> None:
        super().__init__(f"this controller already has {limit} active credentials")
