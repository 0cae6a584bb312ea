"""Questions to a host: sent once per connection, answered once, gone with their call."""

import asyncio
from datetime import timedelta
from typing import Any
from uuid import uuid4

import pytest
from django.utils import timezone

from controller_client.protocol.messages import DeleteFile, FileChunk, FileDeleted, ReadFile
from projects.errors.base import ControllerActionError
from projects.models import Controller, FileRequest
from projects.monitors import questions as file_questions
from projects.storage.access import in_database
from projects.wakeups import doorbells
from tests.support.rows import make_controller
from tests.support.waiting import await_until

pytestmark = pytest.mark.django_db(transaction=True)


def online(**fields: Any) -> Controller:
    values: dict[str, Any] = {
        "lease_expires_at": timezone.now() + timedelta(seconds=60),
        "capabilities": ["files"],
        "epoch": 3,
    }
    return make_controller(**{**values, **fields})


async def taken(controller: Controller, epoch: int = 3) -> list[ReadFile | DeleteFile]:
    return await in_database(file_questions.take, controller.id, epoch)


async def test_a_question_is_put_answered_and_forgotten() -> None:
    controller = await in_database(online)
    ask = ReadFile(path="/a.log", wait_seconds=5.0)
    call = asyncio.create_task(file_questions.read_file(controller.id, ask))
    (question,) = await await_until(lambda: taken(controller), 30, "the question")
    assert (question.id, question.path, question.epoch) == (ask.id, "/a.log", 3)
    assert await taken(controller) == []
    chunk = FileChunk(reply_to=ask.id, identity="1:2", data=b"x")
    await in_database(file_questions.answer, controller.id, chunk)
    await doorbells.ring_question(ask.id)
    assert (await call).data == b"x"
    assert not await in_database(FileRequest.objects.exists)


async def test_a_new_connection_repeats_open_questions_and_an_old_one_gets_none() -> None:
    controller = await in_database(online)
    call = asyncio.create_task(
        file_questions.delete_file(controller.id, DeleteFile(path="/a", identity="1:2"))
    )
    (question,) = await await_until(lambda: taken(controller), 30, "the question")
    await in_database(Controller.objects.filter(id=controller.id).update, epoch=4)
    assert await taken(controller, 3) == []
    assert [again.id for again in await taken(controller, 4)] == [question.id]
    await in_database(file_questions.answer, controller.id, FileDeleted(reply_to=question.id))
    assert (await call).failure is None


async def test_another_host_cannot_answer() -> None:
    controller, other = await in_database(online), await in_database(online, name="other")
    call = asyncio.create_task(file_questions.read_file(controller.id, ReadFile(path="/a")))
    (question,) = await await_until(lambda: taken(controller), 30, "the question")
    assert await taken(other) == []
    await in_database(
        file_questions.answer, other.id, FileChunk(reply_to=question.id, data=b"forged")
    )
    await in_database(
        file_questions.answer, controller.id, FileChunk(reply_to=question.id, data=b"right")
    )
    await in_database(
        file_questions.answer, controller.id, FileChunk(reply_to=question.id, data=b"twice")
    )
    assert (await call).data == b"right"


@pytest.mark.parametrize(
    "lie", [{"data": b"x" * 65_537}, {"identity": "x" * 65}, {"mark": "\0"}, {"identity": "é"}]
)
async def test_an_answer_no_daemon_gives_is_none(lie: dict[str, Any]) -> None:
    controller = await in_database(online)
    call = asyncio.create_task(file_questions.read_file(controller.id, ReadFile(path="/a")))
    (question,) = await await_until(lambda: taken(controller), 30, "the question")
    await in_database(file_questions.answer, controller.id, FileChunk(reply_to=question.id, **lie))
    with pytest.raises(ControllerActionError) as refused:
        await call
    assert refused.value.code == "HOST_SILENT"


async def test_a_call_that_is_cancelled_leaves_no_question() -> None:
    controller = await in_database(online)
    call = asyncio.create_task(file_questions.read_file(controller.id, ReadFile(path="/a")))
    await await_until(lambda: in_database(FileRequest.objects.exists), 30, "the question")
    call.cancel()
    with pytest.raises(asyncio.CancelledError):
        await call
    assert not await in_database(FileRequest.objects.exists)


@pytest.mark.parametrize(
    ("fields", "code"),
    [
        ({"lease_expires_at": None}, "CONTROLLER_OFFLINE"),
        ({"revoked_at": timezone.now()}, "CONTROLLER_REVOKED"),
        ({"capabilities": ["pty"]}, "HOST_TOO_OLD"),
    ],
)
async def test_a_host_that_cannot_answer_is_not_asked(fields: dict[str, object], code: str) -> None:
    controller = await in_database(online, **fields)
    with pytest.raises(ControllerActionError) as refused:
        await file_questions.read_file(controller.id, ReadFile(path="/a"))
    assert refused.value.code == code
    assert not await in_database(FileRequest.objects.exists)


async def test_a_host_that_does_not_answer_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(file_questions, "ANSWER_SECONDS", 0.05)
    controller = await in_database(online)
    with pytest.raises(ControllerActionError) as refused:
        await file_questions.read_file(controller.id, ReadFile(path="/a"))
    assert (refused.value.code, refused.value.retryable) == ("HOST_SILENT", True)


def test_questions_whose_callers_died_are_swept() -> None:
    controller = online()
    now = timezone.now()
    FileRequest.objects.create(
        id=uuid4(), controller=controller, body=b"{}", expires_at=now - timedelta(seconds=60)
    )
    kept = FileRequest.objects.create(
        id=uuid4(), controller=controller, body=b"{}", expires_at=now + timedelta(seconds=60)
    )
    assert file_questions.forget_expired() == 1
    assert list(FileRequest.objects.all()) == [kept]
