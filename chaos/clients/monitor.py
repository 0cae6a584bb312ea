"""Conversations about a log: one party writes and rotates it, a monitor reads it."""

import asyncio
import time
from pathlib import Path
from typing import Final

from chaos.clients.conversation import Conversation, has, text_of
from chaos.program import line_of
from chaos.wire import Reply

_WAIT_SECONDS: Final = 4.0
# How long a call may take that the host answers.
_HOST_SECONDS: Final = 10.0
_TICK_SECONDS: Final = 0.1
_KEPT_LOGS: Final = 9


class Log:
    """A log of numbered lines that is rotated by renaming, as logrotate does."""

    def __init__(self, path: Path, name: str) -> None:
        self.written = 0
        self._path, self._name = path, name

    def write(self, lines: int) -> None:
        """Append so many lines to the log."""
        numbers = range(self.written, self.written + lines)
        with self._path.open("a") as log:
            log.write("".join(f"{line_of(self._name, number)}\n" for number in numbers))
        self.written += lines

    def rotate(self) -> None:
        """Rename the log and its elders, and begin a new one."""
        for number in range(_KEPT_LOGS, 0, -1):
            old = self._path.with_name(f"{self._path.name}.{number}")
            if old.exists():
                old.rename(self._path.with_name(f"{self._path.name}.{number + 1}"))
        self._path.rename(self._path.with_name(f"{self._path.name}.1"))
        self._path.touch()


class Monitor(Conversation):
    """Follows a log that is rotated every few seconds, for a while."""

    async def converse(self) -> None:
        """Write a log and read it to its end. Raises GaveUpError."""
        path = self.place.logs / f"{self.name}.log"
        log = Log(path, self.name)
        log.write(1)
        monitor_id = self.caller.new_id()
        reply = await self.caller.insist(
            "start_session_monitor",
            wait=_HOST_SECONDS,
            session_id=monitor_id,
            session_type="file",
            log_file=str(path),
            request_id=self.caller.new_id(),
        )
        if reply.outcome != "ok":
            return
        writing = asyncio.create_task(self._write(log, self.dice.uniform(5, 20)))
        try:
            await self._follow(monitor_id, writing, log)
        finally:
            writing.cancel()
        await self.caller.insist(
            "stop_session_monitor",
            wait=_HOST_SECONDS,
            session_id=monitor_id,
            save_log=True,
            request_id=self.caller.new_id(),
        )

    async def _write(self, log: Log, seconds: float) -> None:
        end, due = time.monotonic() + seconds, time.monotonic() + 2
        while time.monotonic() < end and not self.is_over():
            log.write(self.dice.randint(1, 20))
            if time.monotonic() > due:
                log.rotate()
                due = time.monotonic() + self.dice.uniform(1.5, 4)
            await asyncio.sleep(_TICK_SECONDS)

    async def _follow(self, monitor_id: str, writing: asyncio.Task[None], log: Log) -> None:
        pieces: list[list[object]] = []
        last = f":{'abcdefghij' * 0}"
        while not self.is_stuck():
            is_written = writing.done()
            reply = await self._updates(monitor_id)
            content = text_of(reply.body, "new_content")
            if content:
                self.progress()
                pieces.append([reply.body.get("gap"), content])
            last = line_of(self.name, log.written - 1)
            is_read = any(last in str(piece[1]) for piece in pieces[-2:])
            if is_written and (is_read or self._is_empty(reply, content)):
                self.place.history.note(
                    "followed", session=self.name, written=log.written, pieces=pieces, last=last
                )
                return

    def _is_empty(self, reply: Reply, content: str) -> bool:
        return has(reply, has_more=False) and not content

    async def _updates(self, monitor_id: str) -> Reply:
        return await self.caller.read(
            "get_session_updates",
            wait=_WAIT_SECONDS,
            session_id=monitor_id,
            wait_seconds=_WAIT_SECONDS,
            request_id=self.caller.new_id(),
        )
