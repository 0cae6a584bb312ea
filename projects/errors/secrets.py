"""Errors of a stored secret, found before anything is sent to the host."""

from collections.abc import Sequence

from projects.errors.base import NotFound


class SecretNotFound(NotFound):
    """The project has no secret of this name that may be typed into this session.

    The error does not say whether the secret is missing or not allowed here: the difference would
    tell a caller which names exist.
    """

    code = "SECRET_NOT_FOUND"

    def __init__(self, name: str, usable: Sequence[str] = ()) -> None:
        """``usable``: names of the secrets that may be typed into this session."""
        which = (
            f"Secrets for this session: {', '.join(usable[:50])}."
            if usable
            else "No secret is set for this session."
        )
        self.hint = (
            f"Nothing was typed. {which} If you were given the value, send it as input_text; "
            "otherwise ask the operator."
        )
        super().__init__(f"there is no secret {name[:64]!r} for this session")
