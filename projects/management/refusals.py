"""How commands say no: what is wrong, its code, and what to do next."""

from typing import Final

from django.core.management.base import CommandError

from projects.errors import ControllerActionError

EXIT_REFUSED: Final = 4
"""Nothing was done. Not one of the codes that a followed run ends with."""


def refusal(error: ControllerActionError) -> CommandError:
    """The error as a command ends with it."""
    return CommandError(f"{error} ({error.code}). {error.hint}", returncode=EXIT_REFUSED)
