"""Jobs: a program that is submitted, and asked after by a token until its output is cleared or expires.

The token is the session's id. A query only reads what is stored: it costs what it returns, wherever it starts, and the program never
notices.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Final, Literal
from uuid import UUID

from django.utils import timezone

from controller_client.protocol.limits import MAX_RING_BYTES, RING_BYTES, START_TTL_SECONDS
from controller_client.protocol.messages import StartInteractiveCmd, Stream
from projects import dispatch, output_log, policy, session_actions
from projects.audit_log import audit
from projects.authentication import Caller
from projects.command_snapshot import CommandSnapshot, command_snapshot
from projects.conf import conf
from projects.database import at_length, in_database
from projects.errors import SessionActive, SessionNotFound
from projects.idempotency import request_for
from projects.models import CommandSession, OutputGap
from projects.results import return_code_of
from projects.selectors import ACTIVE
from projects.session_actions import NewSession, actor_of
from projects.stream_text import StreamText, read_text

JobState = Literal["pending", "running", "completed", "not_found"]

DEFAULT_TIMEOUT_SECONDS: Final = 30.0
MAX_TIMEOUT_SECONDS: Final = 3600.0
DEFAULT_BUFFER_BYTES: Final = 10 * 1024 * 1024
MIN_BUFFER_BYTES: Final = 1024
MAX_BUFFER_BYTES: Final = MAX_RING_BYTES
_KIND = CommandSession.Kind
# An interactive session's transcript is not taken away by time.


@dataclass(frozen=True, kw_only=True)
class JobStatus:
    """A job now. ``*_length`` is the byte offset to ask from next; ``*_truncated``: older output of that stream was dropped.

    ``exit_code`` is minus the signal's number for a program that was killed. ``execution_time_seconds`` once it ended.
    """

    token: str
    status: JobState
    exit_code: int | None = None
    stdout: str = ""
    stderr: str = ""
    stdout_length: int = 0
    stderr_length: int = 0
    stdout_truncated: bool = False
    stderr_truncated: bool = False
    execution_time_seconds: float | None = None
    timeout_occurred: bool = False
    warning: str | None = None
    error: str | None = None
    error_code: str | None = None


async def job_submit(
    project_id: UUID,
    command: str,
    *,
    caller: Caller | None = None,
    controller: str | None = None,
    timeout_seconds: float = DEFAULT_TIMEOUT_SECONDS,
    cwd: str | None = None,
    env: Mapping[str, str] | None = None,
    use_pty: bool = False,
    buffer_bytes: int = DEFAULT_BUFFER_BYTES,
    request_id: UUID | None = None,
) -> UUID:
    """Hands ``command`` over to the host and returns its token, without waiting. ``buffer_bytes`` of each stream are kept, newest first.

    Without a terminal it runs on pipes with an empty standard input. ``use_pty`` falls back to pipes, with a warning, where no terminal
    can be had. Raises SessionLimitReached, ControllerOffline and the errors of ``policy``.
    """
    variables = dict(env or {})
    policy.check_start(caller=caller, command=command, cwd=cwd, env=variables, rows=24, cols=120, lifetime_seconds=timeout_seconds)
    build = partial(
        StartInteractiveCmd,
        command=command,
        cwd=cwd,
        env=variables,
        io_mode="pty" if use_pty else "pipe",
        pipe_fallback=use_pty,
        stdin="open" if use_pty else "closed",
        lifetime_seconds=timeout_seconds,
        # What the server cannot take at once may not be less than what is to be kept.
        ring_bytes=max(RING_BYTES, buffer_bytes),
        ttl_seconds=START_TTL_SECONDS,
    )
    new = NewSession(
        build=build, lifetime_seconds=timeout_seconds, kind=_KIND.JOB, limit=conf.max_background_sessions, retained_bytes=buffer_bytes
    )
    how = {"pty": use_pty, "buffer": buffer_bytes, "timeout": timeout_seconds}
    body = {"command": command, "controller": controller, "cwd": cwd, "env": variables, **how}
    request = request_for(project_id, request_id, "job.submit", body)
    acted = await in_database(session_actions.start_session, project_id, caller, controller, new, request)
    if acted.controller_id is not None:
        await dispatch.ring_controller(acted.controller_id)
    return acted.session_id


async def job_status(project_id: UUID, token: str, *, stdout_offset: int = 0, stderr_offset: int = 0) -> JobStatus:
    """The job's state and its output from these byte offsets on; an offset past the end gives none. Unknown or cleared: ``not_found``."""
    try:
        session_id = UUID(token)
    except ValueError:
        return JobStatus(token=token, status="not_found")
    return await at_length(_status, project_id, session_id, token, stdout_offset, stderr_offset)


async def job_clear(project_id: UUID, session_id: UUID, *, caller: Caller | None = None) -> None:
    """Takes the output of a job that is over away for good; its token is unknown from then on. Raises SessionNotFound or SessionActive."""
    await output_clear(project_id, session_id, actor=actor_of(caller))


async def output_clear(project_id: UUID, session_id: UUID, *, actor: str) -> None:
    """The same for any session that is over. Raises SessionNotFound or SessionActive."""
    await in_database(_mark_cleared, project_id, session_id, actor)
    while await in_database(output_log.clear, session_id):
        pass


def _mark_cleared(project_id: UUID, session_id: UUID, actor: str) -> None:
    session = CommandSession.objects.filter(project_id=project_id, id=session_id).first()
    if session is None:
        raise SessionNotFound(session_id)
    if session.state in ACTIVE:
        raise SessionActive(session_id)
    if CommandSession.objects.filter(id=session_id, cleared_at__isnull=True).update(cleared_at=timezone.now()):
        audit(actor, "session.clear", (project_id, session.controller_id, session_id), {})


def _status(project_id: UUID, session_id: UUID, token: str, stdout_offset: int, stderr_offset: int) -> JobStatus:
    try:
        now = command_snapshot(project_id, session_id)
    except SessionNotFound:
        return JobStatus(token=token, status="not_found")
    if now.kind != _KIND.JOB or now.cleared_at is not None:
        return JobStatus(token=token, status="not_found")
    out = _read(session_id, now, "stdout", stdout_offset)
    err = _read(session_id, now, "stderr", stderr_offset)
    return JobStatus(
        token=token,
        status="completed" if now.is_final else "pending" if now.is_pending else "running",
        exit_code=return_code_of(now.exit_code, now.signal or None),
        stdout=out.text,
        stderr=err.text,
        stdout_length=out.next_offset,
        stderr_length=err.next_offset,
        stdout_truncated=_is_truncated(session_id, now, "stdout"),
        stderr_truncated=_is_truncated(session_id, now, "stderr"),
        execution_time_seconds=now.duration_ms / 1000 if now.is_final else None,
        timeout_occurred=now.is_timed_out,
        warning=now.warning or None,
        error=now.failure_message or None,
        error_code=now.failure_code or None,
    )


def _window_start(now: CommandSnapshot, stream: Stream) -> int:
    """The buffer holds this much of the newest, whatever the store still has."""
    retained = conf.output_retained_bytes if now.retained_bytes is None else now.retained_bytes
    return max(now.first_offset(stream), now.next_offset(stream) - retained)


def _read(session_id: UUID, now: CommandSnapshot, stream: Stream, offset: int) -> StreamText:
    end = now.next_offset(stream)
    found = read_text(session_id, stream, max(offset, _window_start(now, stream)), end, is_final=now.is_final)
    # An offset past the end is no place in the stream.
    return found if offset <= end else StreamText("", end, _whole_end(session_id, now, stream))


def _whole_end(session_id: UUID, now: CommandSnapshot, stream: Stream) -> int:
    end = now.next_offset(stream)
    return read_text(session_id, stream, max(0, end - 8), end, is_final=now.is_final).next_offset


def _is_truncated(session_id: UUID, now: CommandSnapshot, stream: Stream) -> bool:
    return _window_start(now, stream) > 0 or OutputGap.objects.filter(session_id=session_id, stream=stream).exists()
