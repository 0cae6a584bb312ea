"""Errors of a caller that shows no valid credential, or that lacks the right for a call."""

from projects.errors.base import ControllerActionError, Forbidden


class Unauthenticated(ControllerActionError):
    """No valid credential was shown."""

    code = "UNAUTHENTICATED"
    status = 401
    hint = (
        "Send 'Authorization: Bearer <API token>' with a token that has not expired or been "
        "revoked."
    )

    def __init__(self, reason: str = "a valid API token is required") -> None:
        super().__init__(reason)


class ScopeMissing(Forbidden):
    """The caller's token lacks the scope that the call needs."""

    code = "SCOPE_MISSING"

    def __init__(self, scope: str) -> None:
        self.scope = scope
        self.hint = f"Use a token with the scope {scope}."
        super().__init__(f"this needs the scope {scope}")
