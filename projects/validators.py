"""What the lists of a project's policy may hold."""

from typing import Any

from django.core.exceptions import ValidationError

from controller_client.command_policy.allowlist import Allowlist


def validate_commands(value: Any) -> None:
    """None, or a list of entries as ``controller_client.command_policy`` has them. Raises ValidationError."""
    _check_list(value)
    try:
        Allowlist.parse(value)
    except ValueError as error:
        raise ValidationError(str(error)) from None


def validate_directories(value: Any) -> None:
    """None, or a list of absolute paths. Raises ValidationError."""
    _check_list(value)
    if any(not path.startswith("/") or "\0" in path or ".." in path.split("/") for path in value or ()):
        raise ValidationError("Each directory has to be an absolute path without '..'.")


def _check_list(value: Any) -> None:
    if value is not None and not (isinstance(value, list) and all(isinstance(entry, str) for entry in value)):
        raise ValidationError('This has to be a list of texts, such as ["sleep", "echo"], or empty for the server\'s setting.')
