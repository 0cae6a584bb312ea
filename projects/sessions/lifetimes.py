"""Pause the clock of a session's lifetime for as long as there is a cause.

The holder keeps the clock, and limits how long it is paused in all (``max_pause_minutes`` of the
project). Each cause is a row. When a cause comes or goes, the host is sent the new state through
the outbox, so that nothing is lost with a connection.
"""

from collections.abc import Iterable
from typing import Final, NamedTuple
from uuid import UUID

from controller_client.protocol.messages import PauseLifetime
from projects.models import CommandSession, Controller, LifetimeHold
from projects.sessions import outbox
from projects.sessions.selectors import ACTIVE

CAPABILITY: Final = "lifetime_pause"
"""The capability of a host that can pause the clock."""
COMMAND_TYPE: Final = str(PauseLifetime.__struct_config__.tag)
TAKE_OVER: Final = "take_over"
"""The cause: a person has the keyboard."""


class Told(NamedTuple):
    """Command ``seq`` tells a host the new state. ``to_ring`` is the host, if it has to be rung."""

    to_ring: UUID | None
    seq: int


def hold(session: CommandSession, cause: str) -> Told | None:
    """Pause the clock of a session for ``cause``, inside a transaction.

    Returns None if the host is too old for that, or the project does not allow it. Call this before
    you write the session's row: every command locks the controller's row first.
    """
    return _change(session, cause, is_held=True)


def release(session: CommandSession, cause: str) -> Told | None:
    """Take ``cause`` away, as ``hold`` adds it. The clock runs on if there is no other cause."""
    return _change(session, cause, is_held=False)


def hold_started_by(project_id: UUID, label: str, cause: str) -> list[Told]:
    """Pause the clocks of all active interactive sessions that this caller has started."""
    wanted = CommandSession.objects.filter(
        project_id=project_id, started_by=label, state__in=ACTIVE
    )
    return _change_all(wanted.filter(kind=CommandSession.Kind.INTERACTIVE), cause, is_held=True)


def release_all(cause: str) -> list[Told]:
    """Take ``cause`` away from every session that has it."""
    held = CommandSession.objects.filter(lifetime_holds__cause=cause)
    return _change_all(held, cause, is_held=False)


def _change_all(sessions: Iterable[CommandSession], cause: str, *, is_held: bool) -> list[Told]:
    # One order everywhere avoids deadlocks: each change locks its controller.
    changed = [
        _change(session, cause, is_held=is_held)
        for session in sorted(sessions, key=lambda row: (row.controller_id, row.id))
    ]
    return [told for told in changed if told is not None]


def _change(session: CommandSession, cause: str, *, is_held: bool) -> Told | None:
    host = Controller.objects.only("capabilities").get(id=session.controller_id)
    max_seconds = session.project.max_pause_minutes * 60.0
    if CAPABILITY not in host.capabilities or max_seconds <= 0 or session.state not in ACTIVE:
        _write(session, cause, is_held=is_held)
        return None
    # This locks the controller: another change of a cause waits here, and then sees ours.
    seq = outbox.allocate_seq(session.controller_id)
    _write(session, cause, is_held=is_held)
    is_paused = LifetimeHold.objects.filter(session=session).exists()
    message = PauseLifetime(
        seq=seq, session_id=str(session.id), is_paused=is_paused, max_seconds=max_seconds
    )
    to_ring = outbox.enqueue(
        controller_id=session.controller_id,
        session_id=session.id,
        message=message,
        event={"actor": "server", "paused": is_paused, "cause": cause},
    )
    return Told(to_ring, seq)


def _write(session: CommandSession, cause: str, *, is_held: bool) -> None:
    if is_held:
        LifetimeHold.objects.get_or_create(session=session, cause=cause)
    else:
        LifetimeHold.objects.filter(session=session, cause=cause).delete()
