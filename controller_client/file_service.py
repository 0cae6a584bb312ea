"""Questions about files, each in a task of its own and looked at in threads, so that a slow disk holds up nobody else.

Waiting for a log to grow is looking again, after growing pauses: one open and one stat. Notification by the kernel would follow paths,
where everything here goes by held descriptors; it is silent on network file systems, so that a poll would have to stand behind it anyway;
and its library takes an inotify instance and a thread for each wait, of which a user has 128. Nothing runs while nobody asks.
"""

import asyncio
import logging
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Final

import msgspec

from controller_client.file_reader import has_news, look
from controller_client.log_deletion import delete
from controller_client.log_paths import LogPaths
from controller_client.protocol.limits import MAX_FILE_WAIT_SECONDS
from controller_client.protocol.messages import DeleteFile, Failure, FileChunk, FileDeleted, Message, ReadFile

logger = logging.getLogger(__name__)

THREADS: Final = 4
# Questions beyond these are answered at once, whatever they would have waited.
MAX_WAITING: Final = 64
FIRST_PAUSE_SECONDS: Final = 0.01
LONGEST_PAUSE_SECONDS: Final = 0.1
_FAILED: Final = Failure(code="FILE_READ_ERROR", message="the host could not carry this out; its log says why")

FileQuestion = ReadFile | DeleteFile


class FileService:
    """Answers questions of one connection at a time."""

    def __init__(self, paths: LogPaths) -> None:
        self._paths = paths
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
        deadline, pause = loop.time() + wait, FIRST_PAUSE_SECONDS
        while True:
            chunk = await loop.run_in_executor(self._pool(), partial(look, self._paths, ask))
            left = deadline - loop.time()
            if has_news(chunk) or left <= 0:
                return chunk
            if not ask.identity:
                # What comes is waited for from where this look ended, also if that was the end of the file.
                ask = msgspec.structs.replace(ask, identity=chunk.identity, mark=chunk.mark, position=chunk.position)
            await asyncio.sleep(min(pause, left))
            pause = min(pause * 1.5, LONGEST_PAUSE_SECONDS)

    async def _delete(self, ask: DeleteFile) -> FileDeleted:
        return await asyncio.get_running_loop().run_in_executor(self._pool(), partial(delete, self._paths, ask))

    def _pool(self) -> ThreadPoolExecutor:
        if self._threads is None:
            self._threads = ThreadPoolExecutor(THREADS, thread_name_prefix="files")
        return self._threads
