"""The transactions of a turn: one commits an input, the other only begins to wait."""

from collections.abc import Callable
from typing import Final, NamedTuple
from uuid import UUID

from controller_client.protocol.messages import SendInput
from controller_client.protocol.values import PROVES_READERS
from projects.accounts.authentication import Caller
from projects.accounts.rate_limits import rate_take_ahead
from projects.audit.log import audit
from projects.conf import conf
from projects.errors.inputs import InputRefused
from projects.errors.sessions import SessionTakenOver
from projects.models import Controller
from projects.policy import command_rules
from projects.policy.typed_input import Typing
from projects.secrets import masks as secret_masks
from projects.secrets.store import Typable, secret_open
from projects.sessions import outbox, selectors
from projects.sessions.idempotency import Done, Request
from projects.sessions.snapshot import session_snapshot
from projects.sessions.transactions import permits
from projects.sessions.transactions.acting import (
    Acted,
    actor_of,
    in_one_transaction,
    number_command_soon,
    require_cleared,
    session_ended,
)
from projects.storage import clock
from projects.storage.columns import as_parameter, sql, time_as_parameter
from projects.storage.rows import execute, row_soon

_SIZES: Final = (0, 16, 256, 4096, 65_536)
"""An audit row names the first of these sizes, in bytes, that an input fits."""

# Written out because it runs in every turn, as ``_NUMBER_COMMAND`` is. It numbers the input only
# while the session is active.
_NUMBER_INPUT: Final = sql(
    """
UPDATE projects_commandsession SET input_seq = input_seq + 1, touched_at = %s
WHERE id = %s AND project_id = %s AND state IN ({places})
RETURNING input_seq, shown_offset, terminal_kind, command, taken_over_by
""",
    places=", ".join("%s" for _ in selectors.ACTIVE),
)


class _NumberedInput(NamedTuple):
    """An input's number, and what its session is like. The order is that of the statement."""

    input_seq: int
    shown_offset: int
    terminal_kind: str
    command: str
    operator: str

    @property
    def is_hidden(self) -> bool:
        """True if the terminal asks for a secret, so that the input may be one."""
        return self.terminal_kind == "secret"


@in_one_transaction
def send_input(
    project_id: UUID,
    session_id: UUID,
    caller: Caller | None,
    typing: Typing,
    request: Request | None,
) -> Acted:
    """Commit one SEND_INPUT.

    Raises SessionNotFound, SessionEnded, SessionTakenOver, ControllerOffline, SecretNotFound,
    InputRefused, CommandNotAllowed or RateLimited.
    """
    require_cleared(caller)
    if request is not None and (earlier := request.earlier()) is not None:
        return Acted(
            session_id=session_id,
            from_offset=earlier.from_offset,
            input_seq=earlier.input_seq or 0,
            command_seq=earlier.command_seq,
            is_new=False,
        )
    _use_rate(caller, typing)
    # 1. The numbers of the command and of the input, and the rules. All three statements are issued
    # before an answer is read: on PostgreSQL a wait for an answer costs more than a statement.
    command_number = number_command_soon(project_id, session_id)
    input_number = _number_input_soon(project_id, session_id)
    rules = command_rules.rules_soon(project_id)
    numbered = command_number()
    controller_id, seq = numbered.controller_id, numbered.seq
    session = input_number()
    if session is None:
        raise session_ended(selectors.session_of(project_id, session_id))
    # 2. May this be typed? A refusal undoes the transaction, and gives the numbers back with it.
    if session.operator and session.operator != actor_of(caller):
        raise SessionTakenOver(session_id, session.operator)
    permits.use(caller)
    permits.check_prompt(caller, session_id, session.input_seq)
    secret = _typable(project_id, controller_id, session, typing)
    if secret is not None:
        _check_host_proves_readers(controller_id)
        secret_masks.secret_remember(session_id, secret.value)
    _check_lines(rules(), session, typing)
    # 3. The command for the host, and the rows that tell of it.
    to_ring = outbox.enqueue_soon(
        controller_id=controller_id,
        session_id=session_id,
        message=_message(typing, secret, session_id, seq=seq, input_seq=session.input_seq),
        token_id=None if caller is None else caller.token_id,
        event={
            "actor": actor_of(caller),
            "hidden": session.is_hidden or secret is not None,
        },
    )
    about = (project_id, controller_id, session_id)
    detail = {**_audited(typing, session), **permits.of_caller(caller)}
    audit(actor_of(caller), "session.input", about, detail)
    if request is not None:
        request.record(
            Done(
                session_id=session_id,
                input_seq=session.input_seq,
                from_offset=session.shown_offset,
                command_seq=seq,
            )
        )
    return Acted(
        session_id=session_id,
        to_ring=to_ring(),
        from_offset=session.shown_offset,
        input_seq=session.input_seq,
        command_seq=seq,
    )


def _typable(
    project_id: UUID, controller_id: UUID, session: _NumberedInput, typing: Typing
) -> Typable | None:
    """The secret that is to be typed, stored or just typed by a person; None for other input."""
    if typing.by_person is not None:
        return Typable(typing.by_person)
    if typing.secret is None:
        return None
    return secret_open(
        project_id, typing.secret, controller_id=controller_id, command=session.command
    )


def poll_session(project_id: UUID, session_id: UUID, request: Request | None) -> Acted:
    """Find out where a call that types nothing begins to show output. Raises SessionNotFound.

    A repeat of its ``request`` begins at the same offset. A call without ``request`` writes nothing
    and needs no transaction.
    """
    if request is None:
        now = session_snapshot(project_id, session_id)
        return _polled(session_id, now.input_seq, now.shown_offset)
    return _poll_recorded(project_id, session_id, request)


@in_one_transaction
def _poll_recorded(project_id: UUID, session_id: UUID, request: Request) -> Acted:
    now = session_snapshot(project_id, session_id)
    if (earlier := request.earlier()) is not None:
        return _polled(session_id, now.input_seq, earlier.from_offset)
    done = Done(session_id=session_id, input_seq=now.input_seq, from_offset=now.shown_offset)
    request.record(done)
    return _polled(session_id, now.input_seq, now.shown_offset)


def _polled(session_id: UUID, input_seq: int, from_offset: int) -> Acted:
    return Acted(session_id=session_id, input_seq=input_seq, from_offset=from_offset, is_new=False)


def _number_input_soon(project_id: UUID, session_id: UUID) -> Callable[[], _NumberedInput | None]:
    """Give the session's next input its number; the function returns None if it is over."""
    keys = [as_parameter(session_id), as_parameter(project_id)]
    values = [time_as_parameter(clock.now()), *keys, *selectors.ACTIVE]
    return row_soon(_NumberedInput, execute(_NUMBER_INPUT, values))


def _check_host_proves_readers(controller_id: UUID) -> None:
    """Raises InputRefused for a daemon that is too old to keep to a secret's terms."""
    host = Controller.objects.only("name", "capabilities").get(id=controller_id)
    if PROVES_READERS not in host.capabilities:
        problem = f"the daemon on {host.name} cannot prove who reads; it has to be upgraded first"
        raise InputRefused("HOST_TOO_OLD", problem)


def _check_lines(rules: command_rules.Rules, session: _NumberedInput, typing: Typing) -> None:
    """Raises CommandNotAllowed for command lines that the project does not allow."""
    if rules.commands.is_open:
        return
    if command_rules.takes_lines(session.command, session.terminal_kind):
        rules.check_typed(typing, is_hidden=session.is_hidden)


def _use_rate(caller: Caller | None, typing: Typing) -> None:
    """Count the input against the rate of the caller's token. Raises RateLimited."""
    if caller is None or caller.token_id is None:
        return
    own = caller.input_bytes_per_minute
    per_minute = conf.input_bytes_per_minute if own is None else own
    size = len(typing.data) + len(typing.keys)
    key = f"input {caller.token_id}"
    rate_take_ahead(key, size, per_minute, "bytes of input with this API token")


def _message(
    typing: Typing,
    secret: Typable | None,
    session_id: UUID,
    *,
    seq: int,
    input_seq: int,
) -> SendInput:
    """The SEND_INPUT for the host; a secret goes in it with the terms on which it may be typed."""
    if secret is None:
        return SendInput(
            seq=seq,
            session_id=str(session_id),
            input_seq=input_seq,
            data=typing.data,
            keys=list(typing.keys),
            eof=typing.eof,
        )
    return SendInput(
        seq=seq,
        session_id=str(session_id),
        input_seq=input_seq,
        secret=SendInput.secret_line(secret.value),
        may_echo=secret.may_echo,
        secret_programs=list(secret.programs),
    )


def _audited(typing: Typing, session: _NumberedInput) -> dict[str, object]:
    """The detail of an input's audit row: never its text, nor its exact length."""
    if typing.secret is not None:
        return {"input_seq": session.input_seq, "secret": typing.secret}
    if typing.by_person is not None:
        return {"input_seq": session.input_seq, "typed": "(a secret, typed by a person)"}
    at_most = next(size for size in _SIZES if len(typing.data) <= size)
    if session.is_hidden:
        typed = f"(hidden input, at most {max(16, at_most)} keys)"
        return {"input_seq": session.input_seq, "typed": typed}
    return {
        "input_seq": session.input_seq,
        "at_most_bytes": at_most,
        "keys": len(typing.keys),
        "eof": typing.eof,
    }
