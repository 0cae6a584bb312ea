"""Which message goes to which session, and which sessions there are.

Messages are handled in the order they arrive, each to its end without waiting; only a START waits (for the spawner), and
the commands behind it for the same session wait with it, in its route.
"""

import asyncio
import logging
import time
from collections import OrderedDict, defaultdict
from pathlib import Path

import msgspec

from controller_client.connection import Connection
from controller_client.control_group import SessionGroup
from controller_client.errors import HolderUnreachable
from controller_client.file_service import FileQuestion, FileService
from controller_client.host_policy import HostPolicy
from controller_client.input_guard import InputGuard
from controller_client.one_shot import StartCommand, as_start
from controller_client.protocol.messages import (
    Ack,
    DoneAck,
    Failure,
    FromServer,
    Ping,
    Pong,
    Resize,
    ResourceLimits,
    SendInput,
    SessionDirective,
    SessionSummary,
    Started,
    StreamOffset,
    TerminateCmd,
    Welcome,
)
from controller_client.resource_limits import NO_LIMITS, lowest
from controller_client.session_directory import SessionDirectory, all_sessions, create, directory_of
from controller_client.session_route import Command, SessionRoute, refusal
from controller_client.spawner_client import Spawner
from controller_client.start_failure import StartFailed, from_os_error

logger = logging.getLogger(__name__)

# A START that is under way when the daemon stops is given this long.
STARTS_SECONDS = 2.0
# Sessions that are over, remembered so that a START that comes once more does not run the program once more.
REMEMBERED_ENDS = 4096


class InteractiveSessionManager:
    """All sessions of this host; lives as long as the daemon, across connections."""

    def __init__(
        self,
        state_dir: Path,
        spawner: Spawner,
        policy: HostPolicy,
        files: FileService,
        *,
        limits: ResourceLimits = NO_LIMITS,
        groups: Path | None = None,
    ) -> None:
        self._state_dir = state_dir
        self._spawner = spawner
        self._policy = policy
        self._files = files
        self._limits = limits
        self._groups = groups
        self._connection: Connection | None = None
        self._window_bytes = 0
        self._routes: dict[str, SessionRoute] = {}
        self._starts: dict[str, asyncio.Task[None]] = {}
        self._ended: OrderedDict[str, None] = OrderedDict()
        self.last_command_seq = 0

    # ---- between connections

    async def survey(self) -> list[SessionSummary]:
        """Every session of this host as HELLO names it; opens the conversation with each living holder."""
        # A START under way is not named: the server, which has not heard of its program yet, sends it again.
        directories = {found.session_id: found for found in all_sessions(self._state_dir) if found.session_id not in self._starts}
        for session_id in [known for known in self._routes if known not in directories and known not in self._starts]:
            del self._routes[session_id]
        for session_id, directory in directories.items():
            self._routes.setdefault(session_id, self._route(directory))
        summaries = await asyncio.gather(*(self._routes[session_id].find() for session_id in directories))
        return [summary for summary in summaries if summary is not None]

    def disconnect(self) -> None:
        """The connection is gone; holders and programs stay."""
        self._connection = None
        self._files.disconnect()
        for route in self._routes.values():
            route.disconnect()

    async def close(self) -> None:
        """Let the starts under way come to their end."""
        self.disconnect()
        if self._starts:
            await asyncio.wait(self._starts.values(), timeout=STARTS_SECONDS)

    # ---- a connection

    def connect(self, connection: Connection, welcome: Welcome) -> None:
        """Do with each session what the server says; one it does not name is left alone until it does."""
        self._connection = connection
        self._window_bytes = welcome.session_window_bytes
        for directive in welcome.sessions:
            route = self._routes.get(directive.session_id)
            if route is not None:
                self._follow(route, connection, directive)

    def _follow(self, route: SessionRoute, connection: Connection, directive: SessionDirective) -> None:
        if directive.action == "forget":
            route.forget()
            return
        route.connect(connection, {position.stream: position.offset for position in directive.expected}, self._window_bytes)
        if directive.action == "terminate":
            route.command(TerminateCmd(seq=0, session_id=directive.session_id))

    def on_message(self, message: FromServer) -> None:
        """Handle one message of the server. Never raises."""
        try:
            self._dispatch(message)
        except Exception:
            # A border: one message that cannot be handled must not end every other session's connection.
            logger.exception("a %s could not be handled", type(message).__name__)

    def _dispatch(self, message: FromServer) -> None:
        if isinstance(message, StartCommand | SendInput | TerminateCmd | Resize):
            self.last_command_seq = max(self.last_command_seq, message.seq)
        if isinstance(message, Ack):
            self._on_ack(message)
        elif isinstance(message, SendInput | TerminateCmd | Resize):
            self._on_command(message)
        elif isinstance(message, StartCommand):
            self._on_start(message)
        elif isinstance(message, DoneAck):
            self._on_done_ack(message)
        elif isinstance(message, FileQuestion) and self._connection is not None:
            self._files.ask(message, self._connection.send)
        elif isinstance(message, Ping) and self._connection is not None:
            self._connection.send(Pong(reply_to=message.id, sessions=len(self._routes), backlog_bytes=self._connection.queued_bytes))

    def _on_ack(self, message: Ack) -> None:
        if self._connection is None:
            return
        by_session: dict[str, list[StreamOffset]] = defaultdict(list)
        for position in message.offsets:
            by_session[position.session_id].append(position)
        for session_id, offsets in by_session.items():
            for position in offsets:
                self._connection.acknowledge(session_id, position.stream, position.offset)
            if (route := self._routes.get(session_id)) is not None:
                route.acknowledge(offsets)

    def _on_done_ack(self, message: DoneAck) -> None:
        for session_id in message.session_ids:
            if self._connection is not None:
                self._connection.drop_session(session_id)
            if (route := self._routes.get(session_id)) is not None:
                route.settle()

    def _on_command(self, command: Command) -> None:
        route = self._routes.get(command.session_id)
        if route is not None:
            route.command(command)
        elif self._connection is not None:
            unknown = Failure(code="SESSION_NOT_FOUND", message="this host has no such session")
            self._connection.send(refusal(command, unknown))

    def _on_forgotten(self, session_id: str) -> None:
        self._routes.pop(session_id, None)
        self._ended[session_id] = None
        if len(self._ended) > REMEMBERED_ENDS:
            self._ended.popitem(last=False)

    # ---- starting

    def _on_start(self, start: StartCommand) -> None:
        session_id = start.session_id
        if session_id in self._ended:
            logger.warning("START of session %s came again after its end", session_id)
        elif session_id in self._starts:
            return
        elif (route := self._routes.get(session_id)) is not None:
            self._repeat_start(route, start)
        else:
            try:
                route = self._route(directory_of(self._state_dir, session_id))
            except ValueError as error:
                self._refuse_start(start, Failure(code="START_FAILED", message=str(error)))
                return
            self._routes[session_id] = route
            deadline = time.monotonic() + start.ttl_seconds
            self._starts[session_id] = asyncio.get_running_loop().create_task(self._start(route, start, deadline))

    def _route(self, directory: SessionDirectory) -> SessionRoute:
        return SessionRoute(directory, InputGuard(directory, self._policy), self._on_forgotten, self._group_of(directory.session_id))

    def _group_of(self, session_id: str) -> SessionGroup | None:
        return SessionGroup.of(self._groups, session_id) if self._groups is not None else None

    def _repeat_start(self, route: SessionRoute, start: StartCommand) -> None:
        if route.is_connected or self._connection is None:
            route.repeat_start(start.seq)
        else:
            # It was still being started when HELLO was said, so WELCOME could not mention it.
            route.connect(self._connection, {}, self._window_bytes)

    async def _start(self, route: SessionRoute, start: StartCommand, deadline: float) -> None:
        try:
            failure = await self._spawn(route, start, deadline)
        except Exception:
            logger.exception("session %s could not be started", start.session_id)
            failure = Failure(code="START_FAILED", message="the host could not start a holder; its log says why")
        finally:
            del self._starts[start.session_id]
        if failure is not None:
            self._routes.pop(start.session_id, None)
            self._refuse_start(start, failure)
        elif self._connection is None:
            route.disconnect()
        else:
            route.connect(self._connection, {}, self._window_bytes)

    async def _spawn(self, route: SessionRoute, start: StartCommand, deadline: float) -> Failure | None:
        """Have a holder and the conversation with it, or the reason why there is none and never will be."""
        if time.monotonic() >= deadline:
            return Failure(code="EXPIRED", message="the host took the command too late to start it")
        try:
            start = self._policy.admit(msgspec.structs.replace(start, limits=lowest(start.limits, self._limits)))
            create(self._state_dir, start)
        except StartFailed as error:
            return error.failure
        except OSError as error:
            return from_os_error(error, "the session's directory could not be made").failure
        try:
            await self._spawner.spawn(start)
        except StartFailed as error:
            if route.abandon():
                return error.failure
        try:
            await route.begin()
        except HolderUnreachable as error:
            # It lives, so there may be a program: connect() goes on looking for it.
            logger.warning("%s", error)
        return None

    def _refuse_start(self, start: StartCommand, failure: Failure) -> None:
        if self._connection is not None:
            io_mode = as_start(start).io_mode
            self._connection.send(Started(session_id=start.session_id, command_seq=start.seq, io_mode=io_mode, failure=failure))
