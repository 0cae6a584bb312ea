"""Questions about files: answered, waited for, dropped with their connection."""

import asyncio
from pathlib import Path

import pytest

from controller_client import file_service
from controller_client.file_service import FileService
from controller_client.log_paths import LogPaths
from controller_client.protocol.messages import DeleteFile, FileChunk, FileDeleted, Message, ReadFile
from tests.support.waiting import await_until


@pytest.fixture
def log(tmp_path: Path) -> Path:
    managed = tmp_path / "sessions"
    managed.mkdir(mode=0o700)
    (managed / "a.log").write_text("first\n")
    return managed / "a.log"


@pytest.fixture
def service(log: Path) -> FileService:
    return FileService(LogPaths([], str(log.parent)))


async def test_a_file_is_read_and_deleted(log: Path, service: FileService) -> None:
    answers: list[Message] = []
    read = ReadFile(path=str(log))
    service.ask(read, answers.append)
    await await_until(lambda: answers, 10, "the content")
    assert isinstance(answers[0], FileChunk)
    assert (answers[0].reply_to, answers[0].data) == (read.id, b"first\n")
    service.ask(DeleteFile(path=str(log), identity=answers[0].identity), answers.append)
    await await_until(lambda: len(answers) == 2, 10, "the deletion")
    assert isinstance(answers[1], FileDeleted)
    assert answers[1].failure is None
    service.disconnect()


async def test_a_wait_ends_when_the_log_grows_or_the_time_is_over(log: Path, service: FileService) -> None:
    answers: list[Message] = []
    service.ask(ReadFile(path=str(log), position=None, wait_seconds=20.0), answers.append)
    service.ask(ReadFile(path=str(log), position=None, wait_seconds=0.05), answers.append)
    await await_until(lambda: answers, 10, "the end of the short wait")
    with log.open("a") as file:
        file.write("second\n")
    await await_until(lambda: len(answers) == 2, 10, "the end of the long wait")
    assert [answer.data for answer in answers if isinstance(answer, FileChunk)] == [b"", b"second\n"]
    service.disconnect()


async def test_what_nobody_hears_any_more_is_not_answered(log: Path, service: FileService) -> None:
    answers: list[Message] = []
    service.ask(ReadFile(path=str(log), position=None, wait_seconds=20.0), answers.append)
    await asyncio.sleep(0)
    service.disconnect()
    await await_until(lambda: not service._tasks, 10, "the task to end")
    assert answers == []
    service.ask(ReadFile(path=str(log)), answers.append)
    await await_until(lambda: answers, 10, "an answer on the next connection")
    service.disconnect()


async def test_a_failure_of_ours_is_an_answer(log: Path, service: FileService, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> FileChunk:
        raise RuntimeError("bug")

    monkeypatch.setattr(file_service, "look", fail)
    answers: list[Message] = []
    service.ask(ReadFile(path=str(log)), answers.append)
    await await_until(lambda: answers, 10, "the answer")
    assert isinstance(answers[0], FileChunk)
    assert answers[0].failure is not None
    service.disconnect()
