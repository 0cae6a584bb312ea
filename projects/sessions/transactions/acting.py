"""The parts that actions on sessions share: the retry, the command's number and the result.

An action is a function that starts, types, resizes or terminates for a caller. It runs as one
transaction in a database thread (``in_one_transaction``) and usually does this:

1. It looks for an earlier call with the same request id, and returns what that call did.
2. A start or an input is counted against the rate of the caller's token. What is refused after
   that is counted too (``used_if_refused``).
3. It takes the next number of the controller's outbox (``number_command``).
4. It changes the session's row, and writes the command to the outbox and a row to the audit log.

It returns ``Acted``. The service then rings the controller's doorbell, and waits for the answer.
"""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import wraps
from typing import Final, NamedTuple, ParamSpec, TypeVar
from uuid import UUID

from django.db import IntegrityError

from projects.accounts.authentication import Caller
from projects.accounts.rate_limits import used_if_refused
from projects.conf import conf
from projects.errors.hosts import ControllerOffline
from projects.errors.server import StorageUnavailable
from projects.errors.sessions import SessionEnded, SessionNotFound
from projects.models import CommandSession
from projects.sessions import selectors
from projects.sessions.state import SessionMoved
from projects.storage import clock
from projects.storage.columns import as_parameter
from projects.storage.rows import execute, row_soon
from projects.storage.shared import one_transaction

P = ParamSpec("P")
T = TypeVar("T")

SYSTEM: Final = "system"
_ATTEMPTS: Final = 5
_TOUCH_STEP: Final = timedelta(minutes=1)

# Written out because it runs in every turn: the ORM takes several times as long to build the
# statement as the database takes to run it. It finds the session's controller, locks it, and
# numbers the command.
_NUMBER_COMMAND: Final = """
UPDATE projects_controller SET last_command_seq = last_command_seq + 1
WHERE id = (SELECT controller_id FROM projects_commandsession WHERE id = %s AND project_id = %s)
RETURNING id, last_command_seq, name, lease_expires_at
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Acted:
    """The outcome of the transaction of an action.

    ``to_ring``: the controller that has to be rung for a new command in its outbox.
    ``from_offset``: the offset in bytes at which the output of this call begins.
    ``input_seq``: the number of the session's newest input; 0 if the action does not tell it.
    ``command_seq``: the number of the command that the service can wait for; None for no wait.
    ``is_new``: the call did something now; a repeat of an earlier call did not.
    ``is_withdrawn``: the program was never started, and never will be.
    """

    session_id: UUID
    to_ring: UUID | None = None
    from_offset: int = 0
    input_seq: int = 0
    command_seq: int | None = None
    is_new: bool = True
    is_withdrawn: bool = False


class Numbered(NamedTuple):
    """A command's number in the outbox of its controller, and that controller's lease.

    The fields are the columns that ``_NUMBER_COMMAND`` returns, in the same order.
    """

    controller_id: UUID
    seq: int
    controller_name: str
    lease_expires_at: datetime | None


def actor_of(caller: Caller | None) -> str:
    """The name of a caller in audit rows; "system" for the server itself, which is None."""
    return SYSTEM if caller is None else caller.label


def require_cleared(caller: Caller | None) -> None:
    """Refuse a call that needs a person's approval and has none, with ApprovalRequired."""
    if caller is not None:
        caller.require_cleared()


def in_one_transaction(action: Callable[P, T]) -> Callable[P, T]:
    """Run the action in one transaction, and retry it when another transaction interferes.

    Two errors show this. IntegrityError: the other one took the slot or the request id after this
    one had looked. SessionMoved: the other one changed the session's state. The next attempt sees
    what the other one wrote.

    Raises StorageUnavailable if every attempt fails.
    """

    @wraps(action)
    def attempted(*args: P.args, **kwargs: P.kwargs) -> T:
        for _ in range(_ATTEMPTS):
            try:
                with used_if_refused(), one_transaction():
                    return action(*args, **kwargs)
            except (IntegrityError, SessionMoved):
                continue
        raise StorageUnavailable

    return attempted


def number_command(
    project_id: UUID,
    session_id: UUID,
    *,
    may_be_offline: bool = False,
) -> Numbered:
    """Lock the session's controller and give the next number of its outbox to a command.

    Raises SessionNotFound, and unless it ``may_be_offline`` ControllerOffline or SessionEnded.
    """
    number = number_command_soon(project_id, session_id, may_be_offline=may_be_offline)
    return number()


def number_command_soon(
    project_id: UUID, session_id: UUID, *, may_be_offline: bool = False
) -> Callable[[], Numbered]:
    """Issue the statement of ``number_command``, and return the function that waits for its answer.

    That function returns and raises what ``number_command`` does.
    """
    keys = [as_parameter(session_id), as_parameter(project_id)]
    fetch = row_soon(Numbered, execute(_NUMBER_COMMAND, keys))

    def numbered() -> Numbered:
        return _checked(fetch(), project_id, session_id, may_be_offline=may_be_offline)

    return numbered


def _checked(
    numbered: Numbered | None, project_id: UUID, session_id: UUID, *, may_be_offline: bool
) -> Numbered:
    if numbered is None:
        raise SessionNotFound(session_id)
    if not may_be_offline and not selectors.is_online(numbered.lease_expires_at):
        session = selectors.session_of(project_id, session_id)
        if session.state in selectors.ACTIVE:
            raise ControllerOffline(numbered.controller_name, host_id=numbered.controller_id)
        # Waiting for the host would not help: the session is over.
        raise session_ended(session)
    return numbered


def session_ended(session: CommandSession) -> SessionEnded:
    """The error for an action on a session that is over, with the way it ended."""
    how = [session.state]
    if session.exit_code is not None:
        how.append(f"exit code {session.exit_code}")
    if session.signal:
        how.append(session.signal)
    return SessionEnded(session.id, ", ".join(how))


def touch(session_id: UUID, touched_at: datetime) -> None:
    """Record that a caller uses a session now, so that the session does not count as idle.

    ``touched_at`` is the time on record. It moves in steps, so that most polls write nothing.
    """
    now = clock.now()
    # Where the idle time is short, a quarter of it is the step.
    step = min(_TOUCH_STEP, timedelta(seconds=conf.background_idle_seconds / 4))
    if now - touched_at > step:
        active = CommandSession.objects.filter(id=session_id, state__in=selectors.ACTIVE)
        active.update(touched_at=now)
