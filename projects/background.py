"""Background sessions: programs on pipes that go on between calls. Started, read by a cursor of the caller's own, written to, stopped.

A read never takes anything away from the store, so callers do not take output from each other. A session that no caller has asked
for in a while is ended (``sweeper``).
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Final
from uuid import UUID

from controller_client.protocol.limits import START_TTL_SECONDS
from controller_client.protocol.messages import SendInput, StartInteractiveCmd, Stream
from controller_client.protocol.signal_names import SIGNAL_NAMES, name_of_signal, number_of_signal
from projects import dispatch, policy, read_cursor, session_actions
from projects.authentication import Caller
from projects.command_snapshot import CommandSnapshot, command_snapshot
from projects.conf import conf
from projects.database import in_database
from projects.errors import InputRefused, StartFailed, StartUnconfirmed, UnknownSignal
from projects.idempotency import request_for
from projects.models import CommandSession
from projects.read_cursor import CursorPosition
from projects.session_actions import Acted, NewSession, actor_of
from projects.stream_text import StreamText, read_text
from projects.watching import clamped, watch

MAX_SLICE_BYTES: Final = 1024 * 1024
"""Of each stream, in one reply; the rest comes with the next."""
START_WAIT_SECONDS: Final = 20.0
INPUT_WAIT_SECONDS: Final = 12.0
"""A host gives an input up after 10 s."""
STOP_WAIT_SECONDS: Final = 8.0
"""The grace before SIGKILL, and time to report."""


@dataclass(frozen=True, kw_only=True)
class BackgroundOutput:
    """What came since the caller's last read. ``has_more``: there is more already. ``lost_bytes`` of it are gone.

    ``exit_code``, ``signal``, ``end_reason`` and ``ended_by`` are None while it runs.
    """

    session_id: UUID
    stdout: str
    stderr: str
    is_active: bool
    has_more: bool
    lost_bytes: int
    exit_code: int | None
    signal: str | None
    end_reason: str | None
    ended_by: str | None


@dataclass(frozen=True, kw_only=True)
class BackgroundStarted:
    """A program that was started. ``output`` is what it printed at once, if that was waited for."""

    session_id: UUID
    pid: int
    output: BackgroundOutput | None


@dataclass(frozen=True, kw_only=True)
class Delivery:
    """Whether an input or a signal reached the program; ``hint`` says what to do if not."""

    success: bool
    hint: str


async def background_start(
    project_id: UUID,
    command: str,
    *,
    caller: Caller | None = None,
    controller: str | None = None,
    cwd: str | None = None,
    env: Mapping[str, str] | None = None,
    lifetime_seconds: float | None = None,
    wait_seconds: float = 0.0,
    request_id: UUID | None = None,
) -> BackgroundStarted:
    """Starts ``command`` on pipes and returns when it runs; with ``wait_seconds`` also waits for its first output, or its end.

    Raises StartFailed, StartUnconfirmed, SessionLimitReached, ControllerOffline and the errors of ``policy``.
    """
    lifetime = conf.background_lifetime_seconds if lifetime_seconds is None else lifetime_seconds
    variables = dict(env or {})
    policy.check_start(caller=caller, command=command, cwd=cwd, env=variables, rows=24, cols=120, lifetime_seconds=lifetime)
    build = partial(
        StartInteractiveCmd,
        command=command,
        cwd=cwd,
        env=variables,
        io_mode="pipe",
        lifetime_seconds=lifetime,
        ttl_seconds=START_TTL_SECONDS,
    )
    new = NewSession(build=build, lifetime_seconds=lifetime, kind=CommandSession.Kind.BACKGROUND, limit=conf.max_background_sessions)
    body = {"command": command, "controller": controller, "cwd": cwd, "env": variables, "lifetime": lifetime}
    request = request_for(project_id, request_id, "background.start", body)
    acted = await in_database(session_actions.start_session, project_id, caller, controller, new, request)
    session_id = acted.session_id
    async with dispatch.session_doorbell(session_id) as bell:
        await _ring(acted)
        pid = await watch(bell, partial(_look_started, project_id, session_id), START_WAIT_SECONDS, look_first=not acted.is_new)
        if wait_seconds <= 0:
            return BackgroundStarted(session_id=session_id, pid=pid, output=None)
        read = _Read(project_id, session_id, read_cursor.reader_of(caller), request_id)
        output = await watch(bell, read.look, clamped(wait_seconds), look_first=True)
    return BackgroundStarted(session_id=session_id, pid=pid, output=output)


async def background_read(
    project_id: UUID, session_id: UUID, *, caller: Caller | None = None, wait_seconds: float = 0.0, request_id: UUID | None = None
) -> BackgroundOutput:
    """What was printed since this caller's last read; while there is nothing, waits up to ``wait_seconds`` for some, or for the end.

    A repeat with the ``request_id`` of the last read gets that read's slice again. Raises SessionNotFound.
    """
    read = _Read(project_id, session_id, read_cursor.reader_of(caller), request_id)
    output = await in_database(read.look, wait_seconds <= 0)
    if output is not None:
        return output
    async with dispatch.session_doorbell(session_id) as bell:
        return await watch(bell, read.look, clamped(wait_seconds), look_first=True)


async def background_write(
    project_id: UUID,
    session_id: UUID,
    input_text: str,
    *,
    caller: Caller | None = None,
    eof: bool = False,
    request_id: UUID | None = None,
) -> Delivery:
    """Writes ``input_text`` exactly as given to the program's standard input, and closes that if ``eof``.

    Raises SessionNotFound, SessionEnded, InputRefused, ControllerOffline and InputTooLarge.
    """
    data = policy.input_bytes(input_text, ())
    if not data and not eof:
        await in_database(_touch_known, project_id, session_id)
        return Delivery(success=True, hint="")
    request = request_for(project_id, request_id, "background.input", {"session_id": session_id, "input": input_text, "eof": eof})
    build = partial(SendInput, session_id=str(session_id), data=data, eof=eof)
    acted = await in_database(session_actions.send_input, project_id, session_id, caller, build, request)
    async with dispatch.session_doorbell(session_id) as bell:
        await _ring(acted)
        look = partial(_look_delivered, project_id, session_id, acted.command_seq or 0)
        is_written = await watch(bell, look, INPUT_WAIT_SECONDS, look_first=not acted.is_new)
    return Delivery(success=is_written, hint="" if is_written else _UNCONFIRMED)


async def background_stop(
    project_id: UUID, session_id: UUID, *, caller: Caller | None = None, signal_name: str | None = None, request_id: UUID | None = None
) -> Delivery:
    """Ends the program with its whole process tree: SIGTERM, and SIGKILL for what is left after a grace; or sends one named signal, once.

    ``success`` False: it was over already, or its host is away. Raises SessionNotFound or UnknownSignal.
    """
    number_name = "SIGTERM" if signal_name is None else known_signal(signal_name)
    is_escalated = signal_name is None
    request = request_for(project_id, request_id, "background.stop", {"session_id": session_id, "signal": signal_name})
    acted = await in_database(
        partial(session_actions.terminate_session, signal_name=number_name, is_escalated=is_escalated, request=request),
        project_id,
        session_id,
        actor_of(caller),
    )
    if acted.is_withdrawn:
        return Delivery(success=True, hint="It had not begun yet, and never will.")
    if acted.command_seq is None:
        return Delivery(success=False, hint="The program was over already; read_output still gives its output.")
    async with dispatch.session_doorbell(session_id) as bell:
        await _ring(acted)
        look = partial(_look_signalled, (project_id, session_id), acted.command_seq, number_name, is_escalated)
        is_sent = await watch(bell, look, STOP_WAIT_SECONDS, look_first=not acted.is_new)
    return Delivery(success=is_sent, hint="" if is_sent else "The host is out of reach; the signal is sent as soon as it is back.")


def known_signal(name: str) -> str:
    """``SIGINT`` for ``SIGINT``, ``int`` or ``2``. Raises UnknownSignal."""
    number = number_of_signal(name)
    if number is None:
        raise UnknownSignal(name, SIGNAL_NAMES)
    return name_of_signal(number)


_UNCONFIRMED: Final = "The host has not confirmed it yet. Do not send it again: read_output shows what the program makes of it."


# ---- looks, in a database thread ------------------------------------------------------------------------------------------


async def _ring(acted: Acted) -> None:
    if acted.controller_id is not None:
        await dispatch.ring_controller(acted.controller_id)


def _look_started(project_id: UUID, session_id: UUID, is_last: bool) -> int | None:
    now = command_snapshot(project_id, session_id)
    if now.has_never_begun:
        raise StartFailed(now.failure_code or now.state, now.failure_message or "the host did not start the program")
    if not now.is_pending:
        # A program whose host died before it could say so has none.
        return now.pid or 0
    if is_last:
        raise StartUnconfirmed(session_id)
    return None


def _look_delivered(project_id: UUID, session_id: UUID, command_seq: int, is_last: bool) -> bool | None:
    now = command_snapshot(project_id, session_id, command_seq=command_seq)
    if now.command_failure_code:
        raise InputRefused(now.command_failure_code, now.command_failure_message or "the host refused it")
    if now.command_settled_at is not None:
        return True
    return False if is_last else None


def _look_signalled(about: tuple[UUID, UUID], command_seq: int, signal_name: str, is_escalated: bool, is_last: bool) -> bool | None:
    """Sent; and if it is meant to end the program, the end is waited for as well."""
    now = command_snapshot(*about, command_seq=command_seq)
    if now.command_failure_code == "UNKNOWN_SIGNAL":
        raise UnknownSignal(signal_name, [name for name in SIGNAL_NAMES if name != signal_name])
    is_sent = now.command_settled_at is not None
    if now.is_final or (is_sent and not is_escalated):
        return True
    return is_sent if is_last else None


def _touch_known(project_id: UUID, session_id: UUID) -> None:
    session_actions.touch(session_id, command_snapshot(project_id, session_id).touched_at)


@dataclass(frozen=True, slots=True)
class _Read:
    """One call's read on behalf of one reader."""

    project_id: UUID
    session_id: UUID
    reader: str
    request_id: UUID | None

    def look(self, is_last: bool) -> BackgroundOutput | None:
        """The slice of this read; None while there is nothing to say."""
        now = command_snapshot(self.project_id, self.session_id)
        session_actions.touch(self.session_id, now.touched_at)
        while True:
            cursor = read_cursor.position_of(self.session_id, self.reader)
            if cursor.is_repeated_by(self.request_id):
                return self._repeat(now, cursor)
            out = self._slice(now, "stdout", cursor.stdout_to)
            err = self._slice(now, "stderr", cursor.stderr_to)
            is_empty = out.next_offset == cursor.stdout_to and err.next_offset == cursor.stderr_to
            if is_empty and not is_last and not now.is_final:
                return None
            moved = CursorPosition(cursor.stdout_to, out.next_offset, cursor.stderr_to, err.next_offset, self.request_id)
            is_unchanged = is_empty and self.request_id is None
            if is_unchanged or read_cursor.move(self.session_id, self.reader, cursor, moved):
                return self._output(now, out, err)
            # Another call of the same reader came first: this one reads on where that one ended.

    def _slice(self, now: CommandSnapshot, stream: Stream, start: int) -> StreamText:
        end = now.next_offset(stream)
        page_end = min(end, max(start, now.first_offset(stream)) + MAX_SLICE_BYTES)
        return read_text(self.session_id, stream, start, page_end, is_final=now.is_final and page_end == end)

    def _repeat(self, now: CommandSnapshot, cursor: CursorPosition) -> BackgroundOutput:
        out = read_text(self.session_id, "stdout", cursor.stdout_from, cursor.stdout_to, is_final=True)
        err = read_text(self.session_id, "stderr", cursor.stderr_from, cursor.stderr_to, is_final=True)
        return self._output(now, out, err)

    def _output(self, now: CommandSnapshot, out: StreamText, err: StreamText) -> BackgroundOutput:
        is_over = now.is_final
        return BackgroundOutput(
            session_id=self.session_id,
            stdout=out.text,
            stderr=err.text,
            is_active=not is_over,
            has_more=out.next_offset < now.stdout_next_offset or err.next_offset < now.stderr_next_offset,
            lost_bytes=out.lost_bytes + err.lost_bytes,
            exit_code=now.exit_code,
            signal=now.signal or None,
            end_reason=(now.end_reason or now.state.lower()) if is_over else None,
            ended_by=(now.ended_by or None) if is_over else None,
        )
