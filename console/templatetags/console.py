"""Filters of the console's templates: untrusted text made visible, moments, how a session ended."""

from datetime import UTC, datetime

from django import template

from console.parts import words
from console.parts.words import waiting_for
from projects.admin.parts.display import duration, shortened
from projects.models import CommandSession
from projects.sessions.selectors import ACTIVE

register = template.Library()


@register.filter
def short(text: str) -> str:
    """The beginning of a text that somebody else chose, on one line, all of it visible."""
    return shortened(text)


@register.filter
def moment(at: datetime | None) -> str:
    """A moment to the second with its zone, such as ``2026-11-22 14:03:07 UTC``."""
    return f"{at.astimezone(UTC):%Y-%m-%d %H:%M:%S} UTC" if at else "-"


@register.filter
def second(at: datetime) -> str:
    """A moment to the second in UTC, for a column whose head names the zone."""
    return f"{at.astimezone(UTC):%Y-%m-%d %H:%M:%S}"


@register.filter
def clock(at: datetime) -> str:
    """The time of day in UTC."""
    return f"{at.astimezone(UTC):%H:%M:%S}"


@register.filter
def place(at: datetime) -> str:
    """The day and its time in UTC, as a link to a moment of a replay has them."""
    return f"{at.astimezone(UTC):%Y-%m-%dT%H:%M:%S}"


@register.filter
def ago(at: datetime) -> str:
    """A moment as the time since then, such as ``5 minutes ago``."""
    return words.ago(at)


@register.filter
def took(session: CommandSession) -> str:
    """The time from the call that started the session to its end, or to now."""
    return duration(session.created_at, session.ended_at)


@register.filter
def outcome(session: CommandSession) -> str:
    """A few words: an active session waits or works, an ended one has a reason."""
    if session.state in ACTIVE:
        if session.terminal_state == "awaiting_input":
            return waiting_for(session.terminal_kind)
        return "works" if session.state == "RUNNING" else session.state.lower()
    how = session.end_reason or session.state.lower().replace("_", " ")
    code = "" if session.exit_code is None else f", exit code {session.exit_code}"
    return f"{how}{code}"
