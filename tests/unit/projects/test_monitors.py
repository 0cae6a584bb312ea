"""Starting monitors: how many a project may have."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta
from typing import Any
from uuid import UUID, uuid4

import pytest
from django.utils import timezone

from controller_client.protocol.messages import FileChunk
from projects import dispatch, file_questions, monitors
from projects.database import in_database
from projects.models import Controller
from projects.monitor_errors import MonitorLimitReached
from projects.monitors import MonitorStatus
from tests.support.rows import make_controller
from tests.support.waiting import await_until

pytestmark = pytest.mark.django_db(transaction=True)


def online(**fields: Any) -> Controller:
    return make_controller(lease_expires_at=timezone.now() + timedelta(seconds=300), capabilities=["files"], epoch=3, **fields)


@asynccontextmanager
async def answering(controller: Controller) -> AsyncIterator[None]:
    """A host whose files are all empty."""

    async def answer_all() -> bool:
        for question in await in_database(file_questions.take, controller.id, 3):
            await in_database(file_questions.answer, controller.id, FileChunk(reply_to=question.id, identity="1:2"))
            await dispatch.ring_question(question.id)
        return False

    task = asyncio.create_task(await_until(answer_all, 60, "nothing"))
    try:
        yield
    finally:
        task.cancel()


async def start(project_id: UUID) -> MonitorStatus:
    return await monitors.monitor_start(project_id, str(uuid4()), "file", "/a.log")


async def test_a_project_has_no_more_active_monitors_than_it_may(settings: Any) -> None:
    settings.MAX_MONITORS = 2
    controller = await in_database(online)
    async with answering(controller):
        first = await start(controller.project_id)
        outcomes = await asyncio.gather(*(start(controller.project_id) for _ in range(4)), return_exceptions=True)
        refused = [outcome for outcome in outcomes if isinstance(outcome, MonitorLimitReached)]
        assert len(refused) == 3
        assert {error.code for error in refused} == {"MONITOR_LIMIT_REACHED"}
        assert all(str(first.session_id) in error.hint for error in refused)
        await monitors.monitor_stop(controller.project_id, str(first.session_id), save_log=True)
        await start(controller.project_id)
        with pytest.raises(MonitorLimitReached):
            await start(controller.project_id)
