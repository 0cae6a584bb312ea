"""Ask the host of one connection the questions about its files, and hand over the answers."""

import logging
from collections.abc import Awaitable, Callable
from uuid import UUID

from controller_client.protocol.messages import FileChunk, FileDeleted, FilesNamed, Message
from projects.errors.server import StorageUnavailable
from projects.link.inbound.refusals import UnaskedAnswer
from projects.monitors import questions as file_questions
from projects.storage.access import in_database
from projects.wakeups import doorbells

logger = logging.getLogger(__name__)


class FileAsker:
    """The questions of one connection, whose ``epoch`` is set before ``ask`` runs.

    ``send`` puts a frame on the socket.
    """

    def __init__(self, controller_id: UUID, send: Callable[[Message], Awaitable[None]]) -> None:
        self.epoch = 0
        self._controller_id = controller_id
        self._send = send
        self._asked: set[str] = set()

    def check(self, answer: FileChunk | FileDeleted | FilesNamed) -> None:
        """Raises UnaskedAnswer if the question was not asked here, or was answered already."""
        if answer.reply_to not in self._asked:
            raise UnaskedAnswer
        self._asked.discard(answer.reply_to)

    async def hand_over(self, answer: FileChunk | FileDeleted | FilesNamed) -> None:
        """Store an answer and wake the caller that waits for it.

        An answer that cannot be stored is lost with its question; the caller then asks again.
        """
        try:
            await in_database(file_questions.answer, self._controller_id, answer)
        except StorageUnavailable:
            logger.error("an answer of controller %s could not be stored", self._controller_id)
        else:
            await doorbells.ring_question(answer.reply_to)

    async def ask(self) -> None:
        """Ask each new question, for as long as the connection lives."""
        async with doorbells.Doorbell(doorbells.files_group(self._controller_id)) as bell:
            while True:
                try:
                    await self._look()
                except StorageUnavailable:
                    logger.error(
                        "questions for controller %s cannot be read now", self._controller_id
                    )
                await bell.rung()

    async def _look(self) -> None:
        while True:
            questions = await in_database(file_questions.take, self._controller_id, self.epoch)
            for question in questions:
                self._asked.add(question.id)
                await self._send(question)
            if len(questions) < file_questions.PER_TAKE:
                return
