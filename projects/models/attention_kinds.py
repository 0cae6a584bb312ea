"""The kinds of things that want a person's attention."""

from typing import Final

from django.db.models import TextChoices


class AttentionKind(TextChoices):
    """The kinds of events that are written."""

    SECRET_WANTED = "secret_wanted"  # noqa: S105 - a kind of event
    INPUT_WANTED = "input_wanted"
    APPROVAL_WANTED = "approval_wanted"
    TAKEN_OVER = "taken_over"
    HOST_AWAY = "host_away"
    HOST_ALARM = "host_alarm"
    SESSION_LOST = "session_lost"
    RUN_ENDED = "run_ended"


RESOLVED: Final = "resolved"
"""People are told this when an event that they were told of has ended."""
TELLABLE: Final = (*AttentionKind.values, RESOLVED)
"""All words that people can be told."""
