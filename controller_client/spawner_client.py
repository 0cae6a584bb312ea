"""The daemon's side of the fork server: ask for a holder, and learn when one can be connected to."""

import asyncio
import errno
import os
import socket
import sys
from asyncio.subprocess import Process
from contextlib import suppress
from pathlib import Path
from typing import Final

import controller_client
from controller_client.one_shot import StartCommand
from controller_client.session_directory import directory_of
from controller_client.start_failure import from_os_error

SPAWN_SECONDS: Final = 15.0
"""A holder that is not there after so long never will be."""
_STOP_SECONDS: Final = 5.0
_PASSED_ON: Final = ("HOME", "USER", "LOGNAME", "PATH", "LANG", "TZ")


class Spawner:
    """Starts and restarts the fork server; ``spawn`` may be called many times at once.

    ``groups``: where to make control groups, if anywhere.
    """

    def __init__(self, state_dir: Path, groups: Path | None = None) -> None:
        self._arguments = [str(state_dir), *([str(groups)] if groups is not None else [])]
        self._state_dir = state_dir
        self._process: Process | None = None
        self._writer: asyncio.StreamWriter | None = None
        self._replies: asyncio.Task[None] | None = None
        self._waiting: dict[str, asyncio.Future[str]] = {}
        self._starting = asyncio.Lock()

    async def start(self) -> None:
        """Warm the fork server up, unless it runs. Raises OSError."""
        async with self._starting:
            if self._process is not None and self._process.returncode is None:
                return
            await self._discard()
            # Each fork server has those who wait for it: the end of the last one is no news to the next one's.
            waiting = self._waiting = {}
            ours, theirs = socket.socketpair()
            with theirs:
                self._process = await asyncio.create_subprocess_exec(
                    sys.executable, "-m", "controller_client.spawner", *self._arguments, stdin=theirs.fileno(), env=_environment()
                )
            reader, self._writer = await asyncio.open_connection(sock=ours)
            self._replies = asyncio.create_task(_read_replies(reader, waiting))

    async def spawn(self, start: StartCommand) -> None:
        """A holder for the session whose directory was just created; returns once it can be connected to.

        Raises StartFailed when it is certain that there is none and never will be.
        """
        try:
            outcome = await self._ask(start.session_id)
        except OSError as error:  # also TimeoutError
            if self._has_holder(start.session_id):
                return
            raise from_os_error(error, "no holder could be started") from None
        if outcome != "ok":
            number = next((number for number, name in errno.errorcode.items() if name == outcome), errno.EAGAIN)
            raise from_os_error(OSError(number, os.strerror(number)), "no holder could be started")

    async def _ask(self, session_id: str) -> str:
        """What the fork server says."""
        await self.start()
        waiting, answer = self._waiting, asyncio.get_running_loop().create_future()
        waiting[session_id] = answer
        try:
            if self._writer is not None:
                self._writer.write(f"{session_id}\n".encode())
            return await asyncio.wait_for(answer, SPAWN_SECONDS)
        finally:
            waiting.pop(session_id, None)

    def _has_holder(self, session_id: str) -> bool:
        """Whether one came into being although nobody said so; if not, none can any more."""
        directory = directory_of(self._state_dir, session_id)
        lock = directory.lock()
        if lock is None:
            return directory.path.is_dir()
        directory.remove()
        os.close(lock)
        return False

    async def close(self) -> None:
        """End the fork server; holders stay."""
        async with self._starting:
            await self._discard()

    async def _discard(self) -> None:
        if self._writer is not None:
            self._writer.close()
            self._writer = None
        if self._process is not None:
            try:
                await asyncio.wait_for(self._process.wait(), _STOP_SECONDS)
            except TimeoutError:
                self._process.kill()
                await self._process.wait()
            self._process = None
        if self._replies is not None:
            self._replies.cancel()
            with suppress(asyncio.CancelledError):
                await self._replies
            self._replies = None


async def _read_replies(reader: asyncio.StreamReader, waiting: dict[str, asyncio.Future[str]]) -> None:
    """Hand each answer to whoever waits for it; at the end of the fork server there are no more."""
    while line := await reader.readline():
        session_id, _, outcome = line.decode("ascii", "replace").strip().partition(" ")
        answer = waiting.get(session_id)
        if answer is not None and not answer.done():
            answer.set_result(outcome)
    for answer in waiting.values():
        if not answer.done():
            answer.set_exception(ConnectionResetError(errno.ECONNRESET, "the fork server ended"))


def _environment() -> dict[str, str]:
    """Just enough to find the interpreter's modules: a holder's environment is readable by the programs of its user."""
    root = str(Path(controller_client.__file__).resolve().parent.parent)
    kept = {name: os.environ[name] for name in _PASSED_ON if name in os.environ}
    return {**kept, "PYTHONPATH": root, "PYTHONDONTWRITEBYTECODE": "1", "PYTHONNODEBUGRANGES": "1"}
