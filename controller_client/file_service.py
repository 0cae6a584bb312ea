"""Questions about files, each in a task of its own and looked at in threads, so that a slow disk holds up nobody else.

Waiting for a log to grow is looking again when the watch of its directory rings, and after growing pauses, too: the kernel tells of
nothing that another host does to a network file system, and of no silence. Nothing runs while nobody asks.
"""

import asyncio
import logging
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Final

import msgspec

from controller_client.directory_watch import Bell, DirectoryWatch
from controller_client.file_reader import has_news, look, series_of
from controller_client.log_deletion import delete
from controller_client.log_paths import FileRefused, LogPaths
from controller_client.protocol.limits import MAX_FILE_WAIT_SECONDS
from controller_client.protocol.messages import DeleteFile, Failure, FileChunk, FileDeleted, Message, ReadFile

logger = logging.getLogger(__name__)

THREADS: Final = 4
# Questions beyond these are answered at once, whatever they would have waited.
MAX_WAITING: Final = 1000
FIRST_PAUSE_SECONDS: Final = 0.01
# Without a bell, and with one.
LONGEST_PAUSE_SECONDS: Final = 0.1
LONGEST_QUIET_SECONDS: Final = 1.0
_FAILED: Final = Failure(code="FILE_READ_ERROR", message="the host could not carry this out; its log says why")

FileQuestion = ReadFile | DeleteFile


class FileService:
    """Answers questions of one connection at a time."""

    def __init__(self, paths: LogPaths) -> None:
        self._paths = paths
        self._watch = DirectoryWatch()
        self._tasks: set[asyncio.Task[None]] = set()
        self._threads: ThreadPoolExecutor | None = None

    def ask(self, question: FileQuestion, answer: Callable[[Message], None]) -> None:
        """``answer`` gets the answer, unless ``disconnect`` comes first."""
        task = asyncio.get_running_loop().create_task(self._serve(question, answer), name=f"file {question.id}")
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def disconnect(self) -> None:
        """Nobody is there to be answered: a new connection asks again. The threads are given back."""
        for task in self._tasks:
            task.cancel()
        self._watch.close()
        if self._threads is not None:
            self._threads.shutdown(wait=False, cancel_futures=True)
            self._threads = None

    async def _serve(self, question: FileQuestion, answer: Callable[[Message], None]) -> None:
        try:
            answer(await (self._read(question) if isinstance(question, ReadFile) else self._delete(question)))
        except Exception:
            # A border: the caller hears of it, and everybody else goes on.
            logger.exception("a %s could not be carried out", type(question).__name__)
            kind = FileChunk if isinstance(question, ReadFile) else FileDeleted
            answer(kind(reply_to=question.id, failure=_FAILED))

    async def _read(self, ask: ReadFile) -> FileChunk:
        loop = asyncio.get_running_loop()
        wait = min(ask.wait_seconds, MAX_FILE_WAIT_SECONDS) if len(self._tasks) <= MAX_WAITING else 0.0
        deadline = loop.time() + wait
        chunk = await self._look(ask)
        if wait <= 0 or has_news(chunk):
            return chunk
        if not ask.identity:
            # What comes is waited for from where this look ended, also if that was the end of the file.
            ask = msgspec.structs.replace(ask, identity=chunk.identity, mark=chunk.mark, position=chunk.position)
        try:
            directory, name = await loop.run_in_executor(self._pool(), self._paths.resolved, ask.path)
        except FileRefused:
            # It has just become another one: the next look says what.
            return await self._look(ask)
        with self._watch.bell(directory, series_of(name).fullmatch) as bell:
            return await self._news(ask, bell, directory, deadline)

    async def _news(self, ask: ReadFile, bell: Bell, directory: str, deadline: float) -> FileChunk:
        """The first look that finds something, or the last one."""
        loop, pause = asyncio.get_running_loop(), FIRST_PAUSE_SECONDS
        while True:
            longest = LONGEST_QUIET_SECONDS if self._watch.is_armed(directory) else LONGEST_PAUSE_SECONDS
            try:
                async with asyncio.timeout(min(pause, longest, max(0.0, deadline - loop.time()))):
                    await bell.wait()
                # Looked at more often for a while: one change is seldom alone, and what is renamed takes its time to settle.
                pause = FIRST_PAUSE_SECONDS
            except TimeoutError:
                pause = min(pause * 1.5, longest)
            bell.clear()
            is_last = loop.time() >= deadline
            chunk = await self._look(ask)
            if is_last or has_news(chunk):
                return chunk

    async def _look(self, ask: ReadFile) -> FileChunk:
        return await asyncio.get_running_loop().run_in_executor(self._pool(), partial(look, self._paths, ask))

    async def _delete(self, ask: DeleteFile) -> FileDeleted:
        return await asyncio.get_running_loop().run_in_executor(self._pool(), partial(delete, self._paths, ask))

    def _pool(self) -> ThreadPoolExecutor:
        if self._threads is None:
            self._threads = ThreadPoolExecutor(THREADS, thread_name_prefix="files")
        return self._threads
