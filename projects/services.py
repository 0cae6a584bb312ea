"""What callers can have done with interactive sessions.

Each action is one transaction (``session_actions``); then its turn is waited for (``turns``) without holding anything.

``caller`` None is the server itself (admin, operator's commands). Everything raised is a ControllerActionError.
"""

import time
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, Literal
from uuid import UUID

from controller_client.protocol.limits import START_TTL_SECONDS
from controller_client.protocol.messages import SendInput, StartInteractiveCmd
from projects import dispatch, metrics, policy, selectors, session_actions
from projects.authentication import Caller
from projects.conf import conf
from projects.database import in_database
from projects.errors import InvalidArgument
from projects.idempotency import request_for
from projects.results import CommandResult, InteractiveCommandResult, InteractiveOutputResult, return_code_of
from projects.session_actions import Acted, NewSession, actor_of
from projects.turns import DEFAULT_OUTPUT_BYTES, DEFAULT_WAIT_SECONDS, Turn, compile_pattern, take_turn
from projects.watching import clamped


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
    """Starts ``command`` on a PTY of the controller and returns at its first prompt, at its end, or after ``wait_seconds``.

    Raises StartFailed if the host could not start it, SessionLimitReached, ControllerOffline and the errors of ``policy``.
    """
    lifetime = conf.interactive_cmd_timeout_seconds if lifetime_seconds is None else lifetime_seconds
    policy.check_start(caller=caller, command=command, cwd=cwd, env=env or {}, rows=rows, cols=cols, lifetime_seconds=lifetime)
    pattern = compile_pattern(wait_for)
    body = {"command": command, "controller": controller, "cwd": cwd, "env": dict(env or {}), "size": [rows, cols], "lifetime": lifetime}
    request = request_for(project_id, request_id, "session.start", body)
    start = partial(
        StartInteractiveCmd,
        command=command,
        cwd=cwd,
        env=dict(env or {}),
        rows=rows,
        cols=cols,
        lifetime_seconds=lifetime,
        ttl_seconds=START_TTL_SECONDS,
    )
    acted = await in_database(
        session_actions.start_session, project_id, caller, controller, NewSession(build=start, lifetime_seconds=lifetime), request
    )
    turn = Turn(project_id, acted.session_id, 0, clamped(wait_seconds), max_output_bytes=max_output_bytes, pattern=pattern, is_start=True)
    return InteractiveCommandResult(**_fields(await _await_turn(turn, acted)))


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
    request_id: UUID | None = None,
) -> InteractiveOutputResult:
    """Types ``input_text`` exactly as given, or ``keys``, and returns what came after it at the next prompt, the end, or after the wait.

    ``secret``: the name of a stored one, which is typed instead, with Enter. Nothing to type: only waits (a poll). ``terminate``: ends
    the session and waits for its end. The output starts where the last call's ended; not ``is_showing``: the next call's starts there,
    too, as this caller is a second one. Raises SessionNotFound, SessionEnded, SessionTakenOver, SecretNotFound, InputRefused,
    ControllerOffline and the errors of ``policy``.
    """
    data = policy.input_bytes(input_text, keys)
    if terminate and (data or keys or eof or secret is not None):
        raise InvalidArgument(["terminate: cannot be combined with input; send the input first, or only terminate"])
    if secret is not None and (data or keys or eof):
        raise InvalidArgument(["secret: is typed alone, and the Enter after it is typed for you; leave input_text and keys out"])
    turn = partial(
        Turn,
        project_id,
        session_id,
        wait_seconds=clamped(wait_seconds),
        max_output_bytes=max_output_bytes,
        pattern=compile_pattern(wait_for),
        view=view,
        is_showing=is_showing,
    )
    if terminate:
        acted = await in_database(session_actions.terminate_session, project_id, session_id, actor_of(caller))
        return await _await_turn(turn(from_offset=acted.from_offset, until="end"), acted)
    is_poll = not (data or keys or eof or secret is not None)
    if is_poll:
        now = await in_database(selectors.session_snapshot, project_id, session_id)
        acted = Acted(session_id, None, from_offset=now.shown_offset, input_seq=now.input_seq, is_new=False)
    else:
        body = {"session_id": session_id, "input_text": input_text, "keys": list(keys), "eof": eof}
        if secret is not None:
            body["secret"] = secret
        request = request_for(project_id, request_id, "session.input", body)
        build = partial(SendInput, session_id=str(session_id), data=data, keys=list(keys), eof=eof)
        acted = await in_database(session_actions.send_input, project_id, session_id, caller, build, request, secret=secret)
    return await _await_turn(turn(from_offset=acted.from_offset, input_seq=acted.input_seq, is_poll=is_poll), acted)


async def controller_terminate_interactive_command(
    project_id: UUID, session_id: UUID, *, caller: Caller | None = None, wait_seconds: float = DEFAULT_WAIT_SECONDS
) -> CommandResult:
    """Ends the session's whole process tree (TERM, then KILL after a grace) and returns the rest of its output.

    Ending it twice is no error. Whoever drives the session is still shown its last output: this caller may be another (an admin).
    """
    acted = await in_database(session_actions.terminate_session, project_id, session_id, actor_of(caller))
    result = await _await_turn(Turn(project_id, session_id, acted.from_offset, clamped(wait_seconds), until="end", is_showing=False), acted)
    return CommandResult(
        success=not result.is_alive,
        stdout=result.output,
        stderr="",
        return_code=return_code_of(result.exit_code, result.signal),
        duration_ms=result.duration_ms,
    )


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
    """Gives the terminal a new size; the program is told. Raises SessionEnded, ControllerOffline or InvalidArgument."""
    if problems := policy.size_problems(rows, cols):
        raise InvalidArgument(problems)
    request = request_for(project_id, request_id, "session.resize", {"session_id": session_id, "size": [rows, cols]})
    acted = await in_database(session_actions.resize_session, project_id, session_id, caller, (rows, cols), request)
    turn = Turn(
        project_id,
        session_id,
        acted.from_offset,
        clamped(wait_seconds) if acted.is_new else 0.0,
        command_seq=acted.command_seq,
        until="settled",
        is_showing=False,
    )
    return await _await_turn(turn, acted)


async def session_take_over(project_id: UUID, session_id: UUID, *, operator: str) -> None:
    """Gives the session's keyboard to a person; input of callers is refused from now on. Raises SessionNotFound or SessionEnded."""
    await in_database(session_actions.take_over, project_id, session_id, operator)
    await dispatch.ring_session(session_id)


async def session_hand_back(project_id: UUID, session_id: UUID, *, operator: str, note: str = "") -> None:
    """Gives it back. ``note`` is part of what callers are told of the session from now on. Raises SessionNotFound or SessionEnded."""
    await in_database(session_actions.hand_back, project_id, session_id, operator, note[:1000])
    await dispatch.ring_session(session_id)


async def _await_turn(turn: Turn, acted: Acted) -> InteractiveOutputResult:
    # The bell is heard before the controller is: nothing that answers the command can be missed.
    began = time.perf_counter()
    async with dispatch.session_doorbell(acted.session_id) as bell:
        if acted.controller_id is not None:
            await dispatch.ring_controller(acted.controller_id)
        result = await take_turn(turn, bell, look_first=not acted.is_new)
    metrics.TURNS.labels(result.state).inc()
    if acted.is_new and acted.input_seq and result.state != "running":
        metrics.TURN_SECONDS.observe(time.perf_counter() - began)
    return result


def _fields(result: InteractiveOutputResult) -> dict[str, Any]:
    return {name: getattr(result, name) for name in InteractiveOutputResult.__dataclass_fields__}
