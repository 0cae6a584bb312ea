"""The daemon's side of the fork server, which forks the holders of sessions.

The two talk over a socket pair, in lines: ``spares`` has the way to one fork server. The fork
server is started again when it has ended.
"""

import asyncio
import errno
import signal
import socket
from asyncio.subprocess import Process
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final

from controller_client.protocol.messages import Failure, FromHolder, Message
from controller_client.server_link.holders.client import (
    HolderClient,
    error_named,
    ignore,
    nothing,
)
from controller_client.server_link.holders.privileged import (
    PrivilegedForkServer,
    fork_server_command,
    fork_server_environment,
)
from controller_client.server_link.holders.spares import SPAWN_SECONDS, ForkServerLink
from controller_client.session_files.directory import all_sessions
from controller_client.session_files.one_shot import StartCommand
from controller_client.system import prctl
from controller_client.system.adoption import LATER, Foster, Left
from controller_client.system.process_tree import ProcessInfo, named_process
from controller_client.system.start_failure import StartFailed, from_os_error

# The delay before children are looked at again that could not be looked at.
LOOK_AGAIN_SECONDS: Final = 0.2
# The fork server has this long to name the processes that a dead holder left. On a busy host it may
# take seconds, and what it does not name would not be ended.
LEFT_SECONDS: Final = 10.0
# Killing takes 2 s where something cannot be killed.
SWEEP_SECONDS: Final = 10.0
_STOP_SECONDS: Final = 5.0
Listeners = tuple[Callable[[FromHolder], None], Callable[[], None]]
Spawn = Callable[[StartCommand, Sequence[Message], Listeners], Awaitable[HolderClient]]


class Spawner:
    """Starts and restarts the fork server. ``spawn`` may be called many times at once.

    ``groups`` is the directory for control groups, if there is one. ``is_adopting``: this process
    becomes the parent of the processes that a dead fork server and its holders leave. It then reaps
    every child that it did not start itself. ``run_as``: the user of programs, if that is another.
    ``privileged`` is the fork server that this process started while it had the right to; there
    cannot be a second one, so ``on_lost`` is called when it has ended.
    """

    def __init__(
        self,
        state_dir: Path,
        groups: Path | None = None,
        *,
        is_adopting: bool = False,
        run_as: str | None = None,
        privileged: PrivilegedForkServer | None = None,
        on_lost: Callable[[], None] = nothing,
    ) -> None:
        self._command = fork_server_command(state_dir, groups, run_as)
        self._state_dir = state_dir
        self.run_as = run_as
        self._privileged = privileged
        self._on_lost = on_lost
        self._process: Process | PrivilegedForkServer | None = None
        self._link: ForkServerLink | None = None
        self._starting = asyncio.Lock()
        self._foster = Foster(self._session_held_by, self._is_fork_server) if is_adopting else None
        if self._foster is not None:
            prctl.adopt_orphans()
            asyncio.get_running_loop().add_signal_handler(signal.SIGCHLD, self._look, self._foster)

    async def start(self) -> None:
        """Start the fork server, unless it runs. Raises OSError."""
        async with self._starting:
            if self._process is not None and self._process.returncode is None:
                return
            await self._launch()
        if self._foster is not None:
            # Signals of children that came or died during the start were ignored.
            self._look(self._foster)

    async def _launch(self) -> None:
        await self._discard()
        if self._privileged is not None:
            self._process, self._link = self._privileged, self._privileged.link()
            return
        ours, theirs = socket.socketpair()
        with theirs:
            self._process = await asyncio.create_subprocess_exec(
                *self._command, stdin=theirs.fileno(), env=fork_server_environment()
            )
        self._link = ForkServerLink(ours)

    async def spawn(
        self,
        start: StartCommand,
        more: Sequence[Message] = (),
        listeners: Listeners = (ignore, nothing),
        *,
        too_late: Callable[[], Failure | None] = nothing,
    ) -> HolderClient:
        """Hand START, and ``more`` behind it, to a holder in one write; return the conversation.

        ``listeners`` are ``on_message`` and ``on_closed`` of the conversation. ``too_late`` says
        why START may not be written any more once there is a holder. Raises StartFailed.
        A holder may come up all the same if none answered in time: only who holds the lock of the
        session's directory knows that there is none.
        """
        try:
            spare = await (await self._reached()).give(start.session_id)
            client = await HolderClient.over(spare.connection, start.session_id, *listeners)
            client.pid = spare.pid
            if (failure := too_late()) is not None:
                client.close()
                raise StartFailed(failure.code, failure.message)
            client.send(start, *more)
            await client.hello_within(SPAWN_SECONDS)
        except TimeoutError:
            raise StartFailed(
                "START_FAILED", f"no holder answered within {SPAWN_SECONDS:g} s"
            ) from None
        except OSError as error:
            raise from_os_error(error, "no holder could be started") from None
        return client

    async def left_by(self, session_id: str) -> Left:
        """Name the processes of a dead holder's session that the fork server or we have adopted.

        Raises OSError if that cannot be told now and has to be asked again.
        """
        ours = (
            self._foster.left_by(session_id) if self._foster is not None else Left([], is_all=False)
        )
        try:
            link = await self._reached()
            is_all, *named = (await link.ask(f"?{session_id}", LEFT_SECONDS)).split()
        except OSError:  # also TimeoutError
            return ours
        if is_all in errno.errorcode.values():
            raise error_named(is_all)
        found = [process for name in named if (process := named_process(name)) is not None]
        is_settled = ours.is_settled and is_all != LATER
        return Left([*ours.processes, *found], ours.is_all or is_all == "1", is_settled)

    async def sweep(
        self, sign: str, session_id: str, known: Sequence[ProcessInfo]
    ) -> list[ProcessInfo]:
        """Have a fork of the fork server list (``=``) or kill (``!``) a session's processes.

        Returns those that are left. Raises OSError.
        """
        link, marks = await self._reached(), " ".join(process.mark for process in known)
        said = (await link.ask(f"{sign}{session_id}", SWEEP_SECONDS, marks)).split()
        if said and said[0] in errno.errorcode.values():
            raise error_named(said[0])
        return [process for mark in said if (process := named_process(mark)) is not None]

    async def _reached(self) -> ForkServerLink:
        """Return the way to a fork server that runs, and is not stopped. Raises OSError."""
        await self.start()
        self._continue()
        if self._link is None:
            raise error_named("ECONNRESET")
        return self._link

    def _continue(self) -> None:
        """Let a fork server go on that a program of the same user has stopped."""
        if self._process is not None:
            with suppress(ProcessLookupError):
                self._process.send_signal(signal.SIGCONT)

    def _look(self, foster: Foster) -> None:
        if self._privileged is not None and self._privileged.returncode is not None:
            self._on_lost()
        try:
            foster.look()
        except OSError:
            # No signal announces these children again.
            asyncio.get_running_loop().call_later(LOOK_AGAIN_SECONDS, self._look, foster)

    def _is_fork_server(self, pid: int) -> bool:
        """Tell the fork server from the children that a holder left.

        While the fork server is being started, its process id is not known yet. Any child may be
        the fork server then, so none is taken for a holder's.
        """
        known = (self._process, self._privileged)
        return self._starting.locked() or pid in {each.pid for each in known if each is not None}

    def _session_held_by(self, pid: int) -> str | None:
        """Return the session whose holder recorded this process id. Raises OSError."""
        return next(
            (
                found.session_id
                for found in all_sessions(self._state_dir)
                if found.read_holder() == pid
            ),
            None,
        )

    async def close(self) -> None:
        """End the fork server; the holders go on."""
        async with self._starting:
            await self._discard()

    async def _discard(self) -> None:
        if self._link is not None:
            self._link.close()
            self._link = None
        self._continue()
        if self._process is not None:
            try:
                await asyncio.wait_for(self._process.wait(), _STOP_SECONDS)
            except TimeoutError:
                self._process.kill()
                await self._process.wait()
            self._process = None
