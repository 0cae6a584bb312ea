"""Refusals that are about accounts: rates, enrolment, credentials. Branches of the tree in ``projects.errors``."""

import math

from projects.errors import Conflict, ControllerActionError, ErrorBody, Forbidden


class RateLimited(ControllerActionError):
    """More than the rate allows. ``what`` was asked for too often; it is possible again after ``retry_after_seconds``."""

    code = "RATE_LIMITED"
    status = 429
    retryable = True

    def __init__(self, what: str, retry_after_seconds: float) -> None:
        self.retry_after_seconds = max(1, math.ceil(retry_after_seconds))
        self.hint = f"Nothing was done. Wait {self.retry_after_seconds} s, then try again."
        super().__init__(f"too much in too short a time: {what}")

    def body(self) -> ErrorBody:
        """With the number of seconds, as Retry-After says it over HTTP."""
        return {**super().body(), "retry_after_seconds": self.retry_after_seconds}


class EnrolmentRefused(Forbidden):
    """The code is unknown, used, too old or withdrawn; which of these is not told."""

    code = "ENROLMENT_REFUSED"
    hint = "Ask for a new code: manage.py create_enrolment_code. A code works once, for 15 minutes."

    def __init__(self) -> None:
        super().__init__("this enrolment code is not valid")


class CredentialLimitReached(Conflict):
    """A controller may have two credentials at a time: one, and the one that takes its place."""

    code = "CREDENTIAL_LIMIT_REACHED"
    hint = "Revoke the one that is no longer used, then try again."

    def __init__(self, limit: int) -> None:
        super().__init__(f"this controller already has {limit} active credentials")
