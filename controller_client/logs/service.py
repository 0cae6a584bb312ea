"""Answers questions about files: a task for each, threads for the looks.

So a slow disk holds up no other question. To wait for a log to grow is to look again whenever the
watch of its directory rings. It is looked at after growing pauses, too, because the kernel does not
tell what another host does to a network file system, nor that a file has become quiet. Nothing runs
while nobody asks.
"""

import asyncio
import logging
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Final

import msgspec

from controller_client.logs.deletion import delete
from controller_client.logs.paths import FileRefused, LogPaths
from controller_client.logs.reader import has_news, look
from controller_client.logs.series import series_of
from controller_client.logs.watch import Bell, DirectoryWatch
from controller_client.protocol.limits import MAX_FILE_WAIT_SECONDS
from controller_client.protocol.messages import (
    DeleteFile,
    Failure,
    FileChunk,
    FileDeleted,
    Message,
    ReadFile,
)

logger = logging.getLogger(__name__)

THREADS: Final = 4
# While more questions than this are open, a new one is answered at once, without waiting.
MAX_WAITING: Final = 1000
FIRST_PAUSE_SECONDS: Final = 0.01
# Longest pause between two looks, without a watch of the directory and with one.
LONGEST_PAUSE_SECONDS: Final = 0.1
LONGEST_QUIET_SECONDS: Final = 1.0
_FAILED: Final = Failure(
    code="FILE_READ_ERROR", message="the host could not carry this out; its log says why"
)

FileQuestion = ReadFile | DeleteFile


class FileService:
    """Answers the questions of one connection at a time."""

    def __init__(self, paths: LogPaths) -> None:
        self._paths = paths
        self._watch = DirectoryWatch()
        self._tasks: set[asyncio.Task[None]] = set()
        self._threads: ThreadPoolExecutor | None = None

    def ask(self, question: FileQuestion, answer: Callable[[Message], None]) -> None:
        """Have ``answer`` called with the answer, unless ``disconnect`` comes first."""
        task = asyncio.get_running_loop().create_task(
            self._serve(question, answer), name=f"file {question.id}"
        )
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def disconnect(self) -> None:
        """Drop every open question and end the threads. A new connection asks again."""
        for task in self._tasks:
            task.cancel()
        self._watch.close()
        if self._threads is not None:
            self._threads.shutdown(wait=False, cancel_futures=True)
            self._threads = None

    async def _serve(self, question: FileQuestion, answer: Callable[[Message], None]) -> None:
        try:
            if isinstance(question, ReadFile):
                answer(await self._read(question))
            else:
                loop = asyncio.get_running_loop()
                answer(await loop.run_in_executor(self._pool(), delete, self._paths, question))
        except Exception:
            # A border: the caller hears of the error, and all other questions go on.
            logger.exception("a %s could not be carried out", type(question).__name__)
            kind = FileChunk if isinstance(question, ReadFile) else FileDeleted
            answer(kind(reply_to=question.id, failure=_FAILED))

    async def _read(self, ask: ReadFile) -> FileChunk:
        loop = asyncio.get_running_loop()
        wait = (
            min(ask.wait_seconds, MAX_FILE_WAIT_SECONDS) if len(self._tasks) <= MAX_WAITING else 0.0
        )
        deadline = loop.time() + wait
        chunk = await self._look(ask)
        if wait <= 0 or has_news(chunk):
            return chunk
        if not ask.identity:
            # Wait for what comes after the end of this look, also if that was the end of the file.
            ask = msgspec.structs.replace(
                ask, identity=chunk.identity, mark=chunk.mark, position=chunk.position
            )
        try:
            directory, name = await loop.run_in_executor(
                self._pool(), self._paths.resolved, ask.path
            )
        except FileRefused:
            # The file has just become another one: the next look says what it is now.
            return await self._look(ask)
        with self._watch.bell(directory, series_of(name).fullmatch) as bell:
            return await self._news(ask, bell, directory, deadline)

    async def _news(self, ask: ReadFile, bell: Bell, directory: str, deadline: float) -> FileChunk:
        """Return the first look that finds something, or the last one before the deadline."""
        loop, pause = asyncio.get_running_loop(), FIRST_PAUSE_SECONDS
        while True:
            longest = (
                LONGEST_QUIET_SECONDS if self._watch.is_armed(directory) else LONGEST_PAUSE_SECONDS
            )
            try:
                async with asyncio.timeout(min(pause, longest, max(0.0, deadline - loop.time()))):
                    await bell.wait()
                # Look more often for a while: one change is seldom alone, and a rotation takes its
                # time.
                pause = FIRST_PAUSE_SECONDS
            except TimeoutError:
                pause = min(pause * 1.5, longest)
            bell.clear()
            is_last = loop.time() >= deadline
            chunk = await self._look(ask)
            if is_last or has_news(chunk):
                return chunk

    async def _look(self, ask: ReadFile) -> FileChunk:
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._pool(), look, self._paths, ask)

    def _pool(self) -> ThreadPoolExecutor:
        if self._threads is None:
            self._threads = ThreadPoolExecutor(THREADS, thread_name_prefix="files")
        return self._threads
