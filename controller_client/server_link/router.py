"""The router of the daemon: it knows the sessions of this host and gives each its messages.

Messages of the server are handled in the order in which they arrive, without waiting. Work that has
to wait (for the spawner, a terminal's echo or a disk) runs in a task of its own. Commands for a
session that is being started wait in its route meanwhile.

A START may arrive more than once. ``_on_start`` answers it by where the session is: over, being
started, known, or new. Only a new session is spawned.
"""

import asyncio
import logging
import shlex
import time
from collections import OrderedDict, defaultdict
from errno import ENOMEM
from functools import partial

import msgspec

from controller_client.config.daemon import DaemonConfig
from controller_client.logs.service import FileQuestion, FileService
from controller_client.policy.host_policy import HostPolicy
from controller_client.policy.input_guard import InputGuard
from controller_client.protocol.messages import (
    Ack,
    DoneAck,
    Failure,
    FilesNamed,
    FromServer,
    NameFiles,
    Ping,
    Pong,
    SessionDirective,
    SessionSummary,
    Started,
    Stream,
    StreamOffset,
    TerminateCmd,
    Welcome,
)
from controller_client.server_link.file_looks import FileLooks
from controller_client.server_link.holders.aftermath import Aftermath
from controller_client.server_link.holders.dead_holder import remove_unless_held
from controller_client.server_link.holders.fork_server import Spawner
from controller_client.server_link.holders.leftovers import Leftovers
from controller_client.server_link.network.connection import Connection
from controller_client.server_link.refusals import EXPIRED, UNKNOWN_SESSION, Command, refusal
from controller_client.server_link.session_route import SessionRoute
from controller_client.session_files.directory import (
    SessionDirectory,
    all_sessions,
    create,
    directory_of,
)
from controller_client.session_files.one_shot import StartCommand, as_start
from controller_client.system.control_group import SessionGroup
from controller_client.system.echo import is_echoed
from controller_client.system.resource_limits import lowest
from controller_client.system.start_failure import StartFailed, from_os_error

logger = logging.getLogger(__name__)

# How long the daemon waits, when it stops, for the STARTs that are under way.
STARTS_SECONDS = 2.0
# A server that asks which files a command names waits no longer.
NAMING_SECONDS = 10.0
# How many ended sessions are remembered. A repeated START of one of them must not run it again.
REMEMBERED_ENDS = 4096


class SessionRouter:
    """Routes messages to the sessions of this host, for as long as the daemon runs.

    Connections to the server come and go: :meth:`survey` is called before HELLO, :meth:`connect`
    after WELCOME, :meth:`disconnect` at the end of each connection.
    """

    def __init__(self, config: DaemonConfig, spawner: Spawner, policy: HostPolicy) -> None:
        self._config = config
        self._spawner = spawner
        self._policy = policy
        self._files = FileService(config.log_paths)
        # The connection after WELCOME, and the window of each session on it.
        self._connection: Connection | None = None
        self._window_bytes = 0
        # By session id: the sessions that are known, those being started, the last that are over.
        self._routes: dict[str, SessionRoute] = {}
        self._starts: dict[str, asyncio.Task[None]] = {}
        self._ended: OrderedDict[str, None] = OrderedDict()
        # Kept here, as asyncio has only weak references to tasks: answers to PING and NAME_FILES.
        self._echo: asyncio.Task[None] | None = None
        self._namings: set[asyncio.Task[None]] = set()
        self._looks = FileLooks()
        # The highest number of a command so far, for HELLO.
        self.last_command_seq = 0

    # ---- between connections

    def recall(self) -> None:
        """Make a route for each session of this host, and watch its lifetime without a server."""
        try:
            for directory in all_sessions(self._config.state_dir):
                self._recall(directory)
        except OSError as error:
            # The survey before the first connection finds them.
            logger.warning("the sessions of this host cannot be looked for: %s", error)

    def _recall(self, directory: SessionDirectory) -> None:
        if directory.session_id in self._routes:
            return
        route = self._add_route(directory)
        try:
            route.end_watch.recall()
        except Exception:
            # All sessions share the daemon: one of them must not keep it from the others.
            logger.exception("session %s cannot be recalled", directory.session_id)

    async def survey(self) -> list[SessionSummary]:
        """Find the holders of all sessions of this host; summarise the sessions for HELLO.

        A session that is being started is not named: the server has no answer to its START yet, so
        it sends the START again.
        """
        directories = {
            found.session_id: found
            for found in all_sessions(self._config.state_dir)
            if found.session_id not in self._starts
        }
        present = {*directories, *self._starts}
        for session_id in [known for known in self._routes if known not in present]:
            self._routes.pop(session_id).end_watch.vanished()
        for directory in directories.values():
            self._recall(directory)
        summaries = await asyncio.gather(*(self._find(session_id) for session_id in directories))
        return [summary for summary in summaries if summary is not None]

    async def _find(self, session_id: str) -> SessionSummary | None:
        try:
            return await self._routes[session_id].find()
        except Exception:
            # Named all the same: the server takes a session that HELLO leaves out for lost.
            logger.exception("session %s cannot be looked for", session_id)
            return SessionSummary(session_id=session_id, state="running", streams=[], input_seq=0)

    def disconnect(self) -> None:
        """Leave the connection, which is gone. Holders and programs go on."""
        self._connection = None
        self._files.disconnect()
        for route in self._routes.values():
            route.disconnect()

    async def close(self) -> None:
        """Disconnect, and give the STARTs that are under way STARTS_SECONDS to finish."""
        self.disconnect()
        if self._starts:
            await asyncio.wait(self._starts.values(), timeout=STARTS_SECONDS)

    # ---- a connection

    def connect(self, connection: Connection, welcome: Welcome) -> None:
        """Do with each session what WELCOME says. A session it does not name is left alone."""
        self._connection = connection
        self._window_bytes = welcome.session_window_bytes
        for directive in welcome.sessions:
            route = self._routes.get(directive.session_id)
            if route is not None:
                self._follow(route, connection, directive)

    def _follow(
        self, route: SessionRoute, connection: Connection, directive: SessionDirective
    ) -> None:
        if directive.action == "forget":
            route.forget()
            return
        committed: dict[Stream, int] = {
            position.stream: position.offset for position in directive.expected
        }
        route.connect(
            connection, committed, self._window_bytes, is_found_awaited=directive.is_awaited
        )
        if directive.action == "terminate":
            route.command(TerminateCmd(seq=0, session_id=directive.session_id))

    def on_message(self, message: FromServer) -> None:
        """Handle one message of the server. Never raises."""
        try:
            self._dispatch(message)
        except Exception:
            # All sessions share the connection: one message that cannot be handled must not end it.
            logger.exception("a %s could not be handled", type(message).__name__)

    def _dispatch(self, message: FromServer) -> None:
        if isinstance(message, StartCommand | Command):
            self.last_command_seq = max(self.last_command_seq, message.seq)
        if isinstance(message, Ack):
            self._on_ack(message)
        elif isinstance(message, Command):
            self._on_command(message)
        elif isinstance(message, StartCommand):
            self._on_start(message)
        elif isinstance(message, DoneAck):
            self._on_done_ack(message)
        elif isinstance(message, NameFiles) and self._connection is not None:
            self._name_files(message, self._connection)
        elif isinstance(message, FileQuestion) and self._connection is not None:
            self._files.ask(message, self._connection.send)
        elif isinstance(message, Ping):
            self._on_ping(message)

    def _on_ping(self, message: Ping) -> None:
        if message.echo and (self._echo is None or self._echo.done()):
            self._echo = asyncio.create_task(self._pong_after_echo(message), name="echo")
        else:
            self._pong(message)

    async def _pong_after_echo(self, message: Ping) -> None:
        self._pong(message, echoed=await is_echoed())

    def _pong(self, message: Ping, *, echoed: bool = False) -> None:
        if self._connection is not None:
            self._connection.send(
                Pong(
                    reply_to=message.id,
                    sessions=len(self._routes),
                    backlog_bytes=self._connection.queued_bytes,
                    echoed=echoed,
                    policy=self._policy.digest,
                    is_stopped=self._policy.stopped is not None,
                )
            )

    def _name_files(self, question: NameFiles, connection: Connection) -> None:
        """Answer from a thread, since a slow disk would stop the messages of all sessions."""

        async def answer() -> None:
            try:
                files = await self._looks.take(
                    NAMING_SECONDS, self._policy.named_files, question.command, question.cwd
                )
            except (OSError, MemoryError) as error:
                known = error if isinstance(error, OSError) else OSError(ENOMEM, "no memory")
                failure = from_os_error(known, "the files of the command cannot be read").failure
                connection.send(FilesNamed(reply_to=question.id, failure=failure))
            else:
                connection.send(FilesNamed(reply_to=question.id, files=files))

        task = asyncio.create_task(answer(), name=f"files of {question.id}")
        self._namings.add(task)
        task.add_done_callback(self._namings.discard)

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
            self._connection.send(refusal(command, UNKNOWN_SESSION))

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
            return
        if session_id in self._starts:
            # The answer to the first START answers this one, too.
            return
        route = self._routes.get(session_id)
        if route is None:
            self._begin_start(start)
        elif route.is_connected or self._connection is None:
            route.repeat_start(start.seq)
        else:
            # The session was being started when HELLO was sent, so WELCOME could not name it.
            route.connect(self._connection, {}, self._window_bytes)

    def _begin_start(self, start: StartCommand) -> None:
        try:
            directory = directory_of(self._config.state_dir, start.session_id)
        except ValueError as error:
            self._refuse_start(start, Failure(code="START_FAILED", message=str(error)))
            return
        route = self._add_route(directory)
        # By this host's clock, from the arrival: the server's clock may be another.
        deadline = time.monotonic() + start.ttl_seconds
        starting = self._start(route, start, deadline)
        self._starts[start.session_id] = asyncio.get_running_loop().create_task(starting)

    def _add_route(self, directory: SessionDirectory) -> SessionRoute:
        groups = self._config.control_group
        group = SessionGroup.of(groups, directory.session_id) if groups is not None else None
        leftovers = Leftovers(directory, self._spawner.run_as, self._spawner.sweep)
        aftermath = Aftermath(directory, group, self._spawner.left_by, leftovers)
        guard = InputGuard(directory, self._policy)
        route = SessionRoute(directory, guard, aftermath, self._on_forgotten)
        self._routes[directory.session_id] = route
        return route

    async def _start(self, route: SessionRoute, start: StartCommand, deadline: float) -> None:
        try:
            failure = await self._spawn(route, start, deadline)
        except Exception:
            logger.exception("session %s could not be started", start.session_id)
            failure = Failure(
                code="START_FAILED", message="the host could not start a holder; its log says why"
            )
        finally:
            del self._starts[start.session_id]
        if failure is not None:
            self._routes.pop(start.session_id, None)
            self._refuse_start(start, failure)
        else:
            route.go_on(self._connection, self._window_bytes)

    async def _spawn(
        self, route: SessionRoute, start: StartCommand, deadline: float
    ) -> Failure | None:
        """Have a holder start the program.

        Returns None if there is a holder, or may be one. A failure is returned only if it is
        certain that there is no holder and never will be: the server then reports that nothing ran.
        """
        # 1. May the program run?
        if (failure := self._too_late(deadline)) is not None:
            return failure
        changed = await self._changed_since_approval(start, deadline)
        if changed is not None:
            return changed
        try:
            start = self._policy.admit(
                msgspec.structs.replace(start, limits=lowest(start.limits, self._config.limits))
            )
            create(self._config.state_dir, start)
        except StartFailed as error:
            return error.failure
        except OSError as error:
            return from_os_error(error, "the start could not be prepared").failure
        # 2. Get a holder, and tell it to start unless getting it took until after the deadline.
        spawn = partial(self._spawner.spawn, too_late=partial(self._too_late, deadline))
        try:
            pid = await route.begin(start, spawn, self._connection, self._window_bytes)
            route.end_watch.began(start, pid)
        except StartFailed as error:
            if remove_unless_held(directory_of(self._config.state_dir, start.session_id)):
                return error.failure
            # Report no failure: the holder did not answer in time, but it may have come up late and
            # run the program. The route searches for the holder from now on.
            route.end_watch.recall()
            logger.warning("session %s: %s", start.session_id, error)
        return None

    def _too_late(self, deadline: float) -> Failure | None:
        return EXPIRED if time.monotonic() >= deadline else self._policy.stopped

    async def _changed_since_approval(self, start: StartCommand, deadline: float) -> Failure | None:
        if start.approved_files is None:
            return None
        line, place = start.command or shlex.join(start.argv or []), (start.cwd, start.env)
        look = partial(self._policy.why_changed, line, place, start.approved_files)
        try:
            return await self._looks.take(deadline - time.monotonic(), look)
        except OSError as error:
            return from_os_error(error, "the files of the command cannot be read").failure

    def _refuse_start(self, start: StartCommand, failure: Failure) -> None:
        if self._connection is not None:
            self._connection.send(
                Started(
                    session_id=start.session_id,
                    command_seq=start.seq,
                    io_mode=as_start(start).io_mode,
                    failure=failure,
                )
            )
