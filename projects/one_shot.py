"""One-shots: a program on pipes, from its start to its end, in one call."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Final
from uuid import UUID

from controller_client.protocol.limits import START_TTL_SECONDS, TERMINATE_GRACE_SECONDS
from controller_client.protocol.messages import RunCommand
from projects import dispatch, policy, session_actions
from projects.authentication import Caller
from projects.command_snapshot import CommandSnapshot, command_snapshot
from projects.conf import conf
from projects.database import in_database
from projects.errors import StartFailed
from projects.hints import HOST_AWAY, ONE_SHOT_TIMED_OUT, ended_hint
from projects.idempotency import request_for
from projects.models import CommandSession
from projects.results import CommandResult, return_code_of
from projects.session_actions import NewSession
from projects.stream_text import read_ends
from projects.watching import watch

DEFAULT_TIMEOUT_SECONDS: Final = 30.0
MAX_TIMEOUT_SECONDS: Final = 45.0
"""Clients of MCP give up at 60 s, and ending a process tree takes its time."""
DEFAULT_OUTPUT_BYTES: Final = 1024 * 1024
MAX_OUTPUT_BYTES: Final = 10 * 1024 * 1024
_END_SLACK_SECONDS: Final = TERMINATE_GRACE_SECONDS + 5.0


@dataclass(frozen=True, kw_only=True)
class OneShotResult(CommandResult):
    """A program from start to end. ``omitted_bytes`` were left out of the middle of stdout and stderr together.

    ``error`` says in words what went wrong, if it was not the program itself; ``hint`` what to do next.
    """

    session_id: UUID
    timed_out: bool
    signal: str | None
    end_reason: str | None
    truncated: bool
    omitted_bytes: int
    error: str | None
    hint: str


async def command_execute(
    project_id: UUID,
    command: str,
    *,
    caller: Caller | None = None,
    controller: str | None = None,
    input_text: str = "",
    cwd: str | None = None,
    env: Mapping[str, str] | None = None,
    timeout_seconds: float = DEFAULT_TIMEOUT_SECONDS,
    max_output_bytes: int = DEFAULT_OUTPUT_BYTES,
    request_id: UUID | None = None,
) -> OneShotResult:
    """Runs ``command`` on pipes to its end; it reads ``input_text``, then end of file. After ``timeout_seconds`` its process tree is ended.

    What it printed until then is in the result. Raises StartFailed, ControllerOffline and the errors of ``policy``.
    """
    variables = dict(env or {})
    policy.check_start(caller=caller, command=command, cwd=cwd, env=variables, rows=24, cols=120, lifetime_seconds=timeout_seconds)
    stdin = policy.stdin_bytes(input_text, command=command, cwd=cwd, env=variables)
    build = partial(
        RunCommand,
        command=command,
        input=stdin,
        cwd=cwd,
        env=variables,
        timeout_seconds=timeout_seconds,
        ttl_seconds=START_TTL_SECONDS,
    )
    new = NewSession(build=build, lifetime_seconds=timeout_seconds, kind=CommandSession.Kind.ONE_SHOT, limit=conf.max_one_shot_commands)
    body = {"command": command, "controller": controller, "input": input_text, "cwd": cwd, "env": variables, "timeout": timeout_seconds}
    request = request_for(project_id, request_id, "command.execute", body)
    acted = await in_database(session_actions.start_session, project_id, caller, controller, new, request)
    look = partial(_look, project_id, acted.session_id, max_output_bytes, timeout_seconds)
    async with dispatch.session_doorbell(acted.session_id) as bell:
        if acted.controller_id is not None:
            await dispatch.ring_controller(acted.controller_id)
        return await watch(bell, look, timeout_seconds + _END_SLACK_SECONDS, look_first=not acted.is_new)


def _look(project_id: UUID, session_id: UUID, max_output_bytes: int, timeout_seconds: float, is_last: bool) -> OneShotResult | None:
    now = command_snapshot(project_id, session_id)
    if now.has_never_begun:
        raise StartFailed(now.failure_code or now.state, now.failure_message or "the host did not start the program")
    if not now.is_final and not is_last:
        return None
    out = read_ends(session_id, "stdout", now.stdout_next_offset, max_output_bytes)
    err = read_ends(session_id, "stderr", now.stderr_next_offset, max_output_bytes)
    error, hint = _verdict(now, timeout_seconds)
    omitted = out.omitted_bytes + err.omitted_bytes
    return OneShotResult(
        session_id=session_id,
        success=now.is_final and now.exit_code == 0 and not now.is_timed_out,
        stdout=out.text,
        stderr=err.text,
        return_code=return_code_of(now.exit_code, now.signal or None),
        duration_ms=now.duration_ms,
        timed_out=now.is_timed_out,
        signal=now.signal or None,
        end_reason=(now.end_reason or now.state.lower()) if now.is_final else None,
        truncated=omitted + out.lost_bytes + err.lost_bytes > 0,
        omitted_bytes=omitted,
        error=error,
        hint=hint,
    )


def _verdict(now: CommandSnapshot, timeout_seconds: float) -> tuple[str | None, str]:
    """(error, hint) of a one-shot."""
    if now.is_timed_out:
        return f"The command did not end within {timeout_seconds:g} s and was ended. {ONE_SHOT_TIMED_OUT}", ONE_SHOT_TIMED_OUT
    if not now.is_final:
        return "The command has not ended, as far as the server knows.", HOST_AWAY
    return None, ended_hint(now.end_reason or now.state.lower(), now.exit_code, now.signal or None)
