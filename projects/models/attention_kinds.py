"""The kinds of things that want a person's attention."""

from collections.abc import Mapping
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
TITLES: Final[Mapping[str, tuple[str, str]]] = {
    AttentionKind.SECRET_WANTED: ("A program asks for a secret", "programs ask for a secret"),
    AttentionKind.INPUT_WANTED: ("A program waits for input", "programs wait for input"),
    AttentionKind.APPROVAL_WANTED: ("An approval is wanted", "approvals are wanted"),
    AttentionKind.TAKEN_OVER: ("A keyboard was taken over", "keyboards were taken over"),
    AttentionKind.HOST_AWAY: ("A host is away", "hosts are away"),
    AttentionKind.HOST_ALARM: ("A host has an alarm", "hosts have an alarm"),
    AttentionKind.SESSION_LOST: ("A session was lost", "sessions were lost"),
    AttentionKind.RUN_ENDED: ("A run of an agent ended", "runs of agents ended"),
    RESOLVED: ("Settled", "settled"),
    "test": ("A test of this target", "tests of this target"),
}
"""Words for one event of a kind, and for several."""
