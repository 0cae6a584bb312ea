"""The actions on interactive sessions: start, type, terminate, resize, take over, hand back.

Each action is one transaction (``transactions``). The call then waits for the turn that follows
(``turns``), without holding a thread or a connection. A ``caller`` that is None is the server
itself, such as the admin. Every error raised is a ControllerActionError.
"""

import asyncio
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Literal
from uuid import UUID

from projects.accounts.ages import made_since
from projects.accounts.authentication import Caller
from projects.conf import conf
from projects.errors.base import ControllerActionError
from projects.errors.calls import InvalidArgument
from projects.models import CommandSession
from projects.policy.arguments import size_problems, typing_of
from projects.policy.launch import Launch
from projects.process import metrics
from projects.sessions.answers.hints import clock_hint
from projects.sessions.answers.results import (
    CommandResult,
    InteractiveCommandResult,
    InteractiveOutputResult,
    return_code_of,
)
from projects.sessions.idempotency import request_for
from projects.sessions.lifetimes import Told
from projects.sessions.snapshot import session_snapshot
from projects.sessions.transactions import keyboard
from projects.sessions.transactions.acting import Acted, actor_of, require_cleared
from projects.sessions.transactions.control import (
    hand_back,
    resize_session,
    take_over,
    terminate_session,
)
from projects.sessions.transactions.input import poll_session, send_input
from projects.sessions.transactions.returning import once_back
from projects.sessions.transactions.start import launch_session
from projects.sessions.turns import (
    DEFAULT_OUTPUT_BYTES,
    DEFAULT_WAIT_SECONDS,
    Turn,
    compile_pattern,
    take_turn,
)
from projects.sessions.waiting import clamped, rung, watch
from projects.storage import clock
from projects.storage.access import in_database, in_shared_transaction
from projects.wakeups import doorbells

CLOCK_WAIT_SECONDS: Final = 3.0
"""The wait for a host to say that it has stopped the clock."""


async def controller_start_interactive_command(
    project_id: UUID,
    command: str,
    *,
    caller: Caller | None = None,
    controller: str | None = None,
    cwd: str | None = None,
    env: Mapping[str, str] | None = None,
    rows: int = 24,
    cols: int = 120,
    lifetime_seconds: float | None = None,
    wait_seconds: float = DEFAULT_WAIT_SECONDS,
    wait_for: str | None = None,
    max_output_bytes: int = DEFAULT_OUTPUT_BYTES,
    request_id: UUID | None = None,
) -> InteractiveCommandResult:
    """Start ``command`` on a PTY of the controller, and return its first turn.

    The turn ends at the first prompt, at the end, or after ``wait_seconds``. ``lifetime_seconds``
    None is the default of the project. Raises StartFailed if the host could not start the program,
    SessionLimitReached, LifetimeTooLong, ControllerOffline and the errors of ``policy``.
    """
    pattern = compile_pattern(wait_for)
    launch = Launch(
        kind=CommandSession.Kind.INTERACTIVE,
        command=command,
        controller=controller,
        cwd=cwd,
        env=env or {},
        io_mode="pty",
        rows=rows,
        cols=cols,
        lifetime_seconds=lifetime_seconds,
    )
    # The fingerprint of a call that names no lifetime has the setting in place of the project's
    # default. So a repeat is still the same call after that default was changed.
    lifetime = lifetime_seconds
    if lifetime is None:
        lifetime = conf.interactive_cmd_timeout_seconds
    acted = await launch_session(
        project_id,
        caller,
        launch,
        action="session.start",
        request_id=request_id,
        details={"size": [rows, cols], "lifetime": lifetime},
    )
    turn = Turn(
        project_id,
        acted.session_id,
        from_offset=acted.from_offset,
        wait_seconds=clamped(wait_seconds),
        max_output_bytes=max_output_bytes,
        pattern=pattern,
        is_start=True,
    )
    return InteractiveCommandResult.model_construct(**vars(await _await_turn(turn, acted)))


async def controller_send_input(
    project_id: UUID,
    session_id: UUID,
    input_text: str = "",
    *,
    caller: Caller | None = None,
    keys: Sequence[str] = (),
    secret: str | None = None,
    eof: bool = False,
    terminate: bool = False,
    wait_seconds: float = DEFAULT_WAIT_SECONDS,
    wait_for: str | None = None,
    max_output_bytes: int = DEFAULT_OUTPUT_BYTES,
    view: Literal["text", "screen"] = "text",
    is_showing: bool = True,
    has_keyboard: bool = False,
    request_id: UUID | None = None,
) -> InteractiveOutputResult:
    """Type ``input_text`` exactly as given, then ``keys``, and return the turn that follows.

    ``secret`` is the name of a stored secret, which is typed instead, with Enter. A call with
    nothing to type only waits (a poll). ``terminate`` ends the session and waits for its end.

    The output starts where that of the last call ended. Unless ``is_showing``, this call does not
    count as the last one. With ``has_keyboard`` only the operator who has the keyboard types.

    Raises SessionNotFound, SessionEnded, SessionTakenOver, SecretNotFound, InputRefused,
    ControllerOffline, KeyboardNotHeld and the errors of ``policy``.
    """
    typing = typing_of(input_text, keys=keys, eof=eof, secret=secret)
    if terminate and not typing.is_empty:
        raise InvalidArgument(
            ["terminate: cannot be combined with input; send the input first, or only terminate"]
        )
    if typing.secret is not None and typing.has_text:
        alone = "is typed alone, and the Enter after it is typed for you"
        raise InvalidArgument([f"secret: {alone}; leave input_text and keys out"])
    pattern, body = compile_pattern(wait_for), {"session_id": session_id}
    if terminate:
        require_cleared(caller)
        request = request_for(project_id, request_id, "session.terminate", body)
        acted = await in_shared_transaction(
            terminate_session, project_id, session_id, actor_of(caller), request=request
        )
    elif typing.is_empty:
        request = request_for(project_id, request_id, "session.poll", body)
        acted = await in_database(poll_session, project_id, session_id, request)
    else:
        typed = {"input_text": input_text, "keys": list(keys), "eof": eof}
        named = {} if secret is None else {"secret": secret}
        request = request_for(project_id, request_id, "session.input", {**body, **typed, **named})
        acting = project_id, session_id, caller, typing, request
        if has_keyboard:
            acted = await once_back(in_database, keyboard.keyboard_type, *acting)
        else:
            acted = await once_back(in_shared_transaction, send_input, *acting)
    is_typed = not terminate and not typing.is_empty
    turn = Turn(
        project_id,
        session_id,
        from_offset=acted.from_offset,
        wait_seconds=clamped(wait_seconds),
        input_seq=0 if terminate else acted.input_seq,
        is_poll=not terminate and typing.is_empty,
        command_seq=acted.command_seq if is_typed else None,
        max_output_bytes=max_output_bytes,
        pattern=pattern,
        until="end" if terminate else "turn",
        view=view,
        is_showing=is_showing,
        is_unentered=typing.is_unentered,
    )
    return await _await_turn(turn, acted)


async def controller_terminate_interactive_command(
    project_id: UUID,
    session_id: UUID,
    *,
    caller: Caller | None = None,
    wait_seconds: float = DEFAULT_WAIT_SECONDS,
) -> CommandResult:
    """End the whole process tree of a session and return the rest of its output.

    The processes get SIGTERM, and SIGKILL after a grace. Ending a session twice is no error. The
    last output is still shown to the caller that drives the session: an admin may end it.
    """
    require_cleared(caller)
    acted = await in_database(terminate_session, project_id, session_id, actor_of(caller))
    turn = Turn(
        project_id,
        session_id,
        from_offset=acted.from_offset,
        wait_seconds=clamped(wait_seconds),
        until="end",
        is_showing=False,
    )
    result = await _await_turn(turn, acted)
    return CommandResult(
        success=not result.is_alive,
        stdout=result.output,
        stderr="",
        return_code=return_code_of(result.exit_code, result.signal),
        duration_ms=result.duration_ms,
        survivors=result.survivors,
    )


async def sessions_terminate(sessions: Sequence[tuple[UUID, UUID]], *, actor: str) -> list[str]:
    """End sessions, given as (project id, session id), all at once: each may take its grace.

    Returns the problem of each session, in the same order; empty if the session has ended.
    """

    async def terminate(project_id: UUID, session_id: UUID) -> str:
        caller = Caller(project_id=project_id, label=actor, scopes=frozenset({"session:kill"}))
        try:
            ended = await controller_terminate_interactive_command(
                project_id, session_id, caller=caller
            )
        except ControllerActionError as error:
            return f"{error} ({error.code})"
        return "" if ended.success else "the session has not ended yet; look again in a moment"

    return await asyncio.gather(*(terminate(*ids) for ids in sessions))


async def session_resize(
    project_id: UUID,
    session_id: UUID,
    *,
    rows: int,
    cols: int,
    caller: Caller | None = None,
    wait_seconds: float = 2.0,
    request_id: UUID | None = None,
) -> InteractiveOutputResult:
    """Give the terminal a new size. The program gets SIGWINCH.

    Raises SessionEnded, ControllerOffline or InvalidArgument.
    """
    if problems := size_problems(rows, cols):
        raise InvalidArgument(problems)
    request = request_for(
        project_id, request_id, "session.resize", {"session_id": session_id, "size": [rows, cols]}
    )
    acting = project_id, session_id, caller
    acted = await once_back(
        in_database, resize_session, *acting, rows=rows, cols=cols, request=request
    )
    turn = Turn(
        project_id,
        session_id,
        from_offset=acted.from_offset,
        wait_seconds=clamped(wait_seconds),
        command_seq=acted.command_seq,
        until="settled",
        is_showing=False,
    )
    return await _await_turn(turn, acted)


async def session_take_over(project_id: UUID, session_id: UUID, *, operator: str) -> str:
    """Give the keyboard of a session to a person. Input of callers is refused from now on.

    The clock of the lifetime is paused, unless the host is too old for that. Returns a sentence
    that says which of the two is the case. Raises SessionNotFound or SessionEnded.
    """
    told = await in_database(take_over, project_id, session_id, operator)
    async with doorbells.session_doorbell(session_id) as bell:
        await doorbells.ring_session(session_id)
        if told is None:
            unasked = _ClockStop(project_id, session_id, None)
            return await in_database(unasked.look, True) or ""
        if told.to_ring is not None:
            await doorbells.ring_controller(told.to_ring)
        stop = _ClockStop(project_id, session_id, told.seq)
        return await watch(bell, stop.look, CLOCK_WAIT_SECONDS, look_first=False)


async def session_hand_back(
    project_id: UUID, session_id: UUID, *, operator: str, note: str = ""
) -> None:
    """Give the keyboard back to the callers, who are shown ``note`` from now on.

    Raises SessionNotFound or SessionEnded.
    """
    told = await in_database(hand_back, project_id, session_id, operator, note[:1000])
    await _tell(session_id, told)


async def session_keyboard_take(
    project_id: UUID, session_id: UUID, *, operator: str, is_insisting: bool
) -> None:
    """Give the keyboard to an operator at a browser; they keep it with ``session_keyboard_keep``.

    Raises SessionNotFound, SessionEnded, InvalidArgument, and SessionTakenOver unless the operator
    insists on taking the keyboard from another one.
    """
    told = await in_database(
        keyboard.keyboard_take, project_id, session_id, operator, is_insisting=is_insisting
    )
    await _tell(session_id, told)


async def session_keyboard_ask(project_id: UUID, session_id: UUID, *, operator: str) -> None:
    """Ask the operator at another browser for the keyboard.

    Raises KeyboardNotHeld and SessionNotFound.
    """
    await in_database(keyboard.keyboard_ask, project_id, session_id, operator)
    await _tell(session_id, None)


async def session_keyboard_release(
    project_id: UUID, session_id: UUID, *, operator: str, note: str = ""
) -> None:
    """Hand back the keyboard that the operator has. Raises KeyboardNotHeld or SessionEnded."""
    told = await in_database(
        keyboard.keyboard_release, project_id, session_id, operator, note[:1000]
    )
    await _tell(session_id, told)


async def session_keyboard_keep(session_id: UUID, *, operator: str, has_typed: bool) -> bool:
    """Note that the operator's browser is there. Returns False if the keyboard is gone."""
    return await in_database(keyboard.keyboard_keep, session_id, operator, has_typed=has_typed)


async def session_keyboard_type(
    project_id: UUID, session_id: UUID, text: str, *, caller: Caller, request_id: UUID
) -> None:
    """Type exactly ``text`` for an operator who has the keyboard, once for each ``request_id``.

    Returns as soon as the input is committed. Raises KeyboardNotHeld and the errors of
    ``controller_send_input``.
    """
    body = {"session_id": session_id, "input_text": text, "keys": [], "eof": False}
    acting = caller, typing_of(text), request_for(project_id, request_id, "session.input", body)
    # A restore hands every keyboard back, so no repeat from before it gets this far.
    with made_since(clock.now()):
        acted = await once_back(
            in_database, keyboard.keyboard_type, project_id, session_id, *acting
        )
    if acted.to_ring is not None:
        await doorbells.ring_controller(acted.to_ring)


async def _tell(session_id: UUID, told: Told | None) -> None:
    """Ring everybody who is concerned by a change of who has the keyboard."""
    await doorbells.ring_session(session_id)
    if told is not None and told.to_ring is not None:
        await doorbells.ring_controller(told.to_ring)


@dataclass(frozen=True, slots=True)
class _ClockStop:
    """The wait until a host has stopped the clock. ``command_seq`` is None if no host was asked."""

    project_id: UUID
    session_id: UUID
    command_seq: int | None

    def look(self, is_last: bool) -> str | None:
        now = session_snapshot(self.project_id, self.session_id, command_seq=self.command_seq)
        is_answered = self.command_seq is None or now.is_command_settled
        if not is_answered and not is_last:
            return None
        return clock_hint(now.lifetime_clock, clock.now(), is_answered=is_answered)


async def _await_turn(turn: Turn, acted: Acted) -> InteractiveOutputResult:
    began = time.perf_counter()
    async with rung(acted) as bell:
        result = await take_turn(turn, bell, look_first=not acted.is_new)
    metrics.TURNS.labels(result.state).inc()
    if acted.is_new and acted.input_seq and result.state != "running":
        metrics.TURN_SECONDS.observe(time.perf_counter() - began)
    return result
