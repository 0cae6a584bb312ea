"""Validators of the lists and objects of a project's policy."""

import re
from typing import Any, Final

from django.core.exceptions import ValidationError

from controller_client.command_policy.allowlist import Allowlist
from controller_client.protocol.messages import ResourceLimits
from projects.models.attention_kinds import TELLABLE

_LABEL: Final = re.compile(r"[A-Za-z0-9][\w.:=/-]{0,63}", re.ASCII)


def validate_commands(value: Any) -> None:
    """Accepts None, or a list of entries of ``controller_client.command_policy``.

    Raises ValidationError.
    """
    _check_list(value)
    try:
        Allowlist.parse(value)
    except ValueError as error:
        raise ValidationError(str(error)) from None


def validate_directories(value: Any) -> None:
    """Accepts None, or a list of absolute paths. Raises ValidationError."""
    _check_list(value)
    if any(
        not path.startswith("/") or "\0" in path or ".." in path.split("/") for path in value or ()
    ):
        raise ValidationError("Each directory has to be an absolute path without '..'.")


def validate_labels(value: Any) -> None:
    """Accepts words of letters, digits and ``_.:=/-`` with spaces between them.

    Raises ValidationError.
    """
    if not all(_LABEL.fullmatch(label) for label in str(value).split()):
        raise ValidationError("Labels are words of letters, digits and _.:=/- with spaces between.")


def validate_limits(value: Any) -> None:
    """Accepts None, or an object of limits by their names in ``ResourceLimits``.

    Each limit is at least 1, or null. Raises ValidationError.
    """
    names = ResourceLimits.__struct_fields__
    if value is not None and not (
        isinstance(value, dict)
        and value.keys() <= set(names)
        and all(limit is None or _is_limit(limit) for limit in value.values())
    ):
        raise ValidationError(
            f'This has to be an object such as {{"processes": 64}} of: {", ".join(names)}; each '
            "at least 1, or null."
        )


def validate_attention(value: Any) -> None:
    """Accepts None, or an object of seconds by the names of ``TELLABLE``.

    Raises ValidationError.
    """
    if value is not None and not (
        isinstance(value, dict)
        and value.keys() <= set(TELLABLE)
        and all(_is_seconds(seconds) for seconds in value.values())
    ):
        raise ValidationError(
            f'This has to be an object such as {{"secret_wanted": 0}} of: {", ".join(TELLABLE)}; '
            "each with a number of seconds from 0 to 86400."
        )


def _is_seconds(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value <= 86_400


def _is_limit(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 1 <= value <= 2**62


def _check_list(value: Any) -> None:
    if value is not None and not (isinstance(value, list) and all(map(_is_text, value))):
        raise ValidationError(
            'This has to be a list of texts, such as ["sleep", "echo"], or empty for the '
            "server's setting."
        )


def _is_text(value: Any) -> bool:
    """True for what every database and every host can be given; a lone surrogate is no text."""
    return isinstance(value, str) and value.encode(errors="ignore").decode() == value
