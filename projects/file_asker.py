"""One connection's part in questions about files: puts them to its host, and hands the answers to whoever waits."""

import logging
from collections.abc import Awaitable, Callable
from uuid import UUID

from controller_client.protocol.messages import FileChunk, FileDeleted, Message
from projects import dispatch, file_questions
from projects.database import in_database
from projects.errors import StorageUnavailable
from projects.inbound.refusals import UnaskedAnswer

logger = logging.getLogger(__name__)


class FileAsker:
    """``epoch`` is the connection's, set when it has one; ``send`` puts a frame on its socket."""

    def __init__(self, controller_id: UUID, send: Callable[[Message], Awaitable[None]]) -> None:
        self.epoch = 0
        self._controller_id = controller_id
        self._send = send
        self._asked: set[str] = set()

    def check(self, answer: FileChunk | FileDeleted) -> None:
        """Raises UnaskedAnswer for what this connection did not ask, or was answered already."""
        if answer.reply_to not in self._asked:
            raise UnaskedAnswer
        self._asked.discard(answer.reply_to)

    async def hand_over(self, answer: FileChunk | FileDeleted) -> None:
        """To whoever waits for it. If it cannot be stored it is lost with its question, and the caller asks again."""
        try:
            await in_database(file_questions.answer, self._controller_id, answer)
        except StorageUnavailable:
            logger.error("an answer of controller %s could not be stored", self._controller_id)
        else:
            await dispatch.ring_question(answer.reply_to)

    async def ask(self) -> None:
        """The asker's loop."""
        async with dispatch.Doorbell(dispatch.files_group(self._controller_id)) as bell:
            while True:
                try:
                    await self._look()
                except StorageUnavailable:
                    logger.error("questions for controller %s cannot be read now", self._controller_id)
                await bell.rung()

    async def _look(self) -> None:
        while True:
            questions = await in_database(file_questions.take, self._controller_id, self.epoch)
            for question in questions:
                self._asked.add(question.id)
                await self._send(question)
            if len(questions) < file_questions.PER_TAKE:
                return
