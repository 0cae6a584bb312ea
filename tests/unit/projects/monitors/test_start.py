"""Starting monitors: how many a project may have."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta
from typing import Any
from uuid import UUID, uuid4

import pytest
from django.utils import timezone

from controller_client.protocol.messages import Failure, FileChunk
from projects.errors.base import Forbidden
from projects.models import Controller
from projects.monitors import questions as file_questions
from projects.monitors.errors import LogDirectoryForeign, MonitorLimitReached, PathNotAllowed
from projects.monitors.read import monitor_read
from projects.monitors.start import MonitorStatus, monitor_start
from projects.monitors.stop import monitor_stop
from projects.storage.access import in_database
from projects.wakeups import doorbells
from tests.support.rows import make_controller
from tests.support.waiting import await_until

pytestmark = pytest.mark.django_db(transaction=True)


def online(**fields: Any) -> Controller:
    return make_controller(
        lease_expires_at=timezone.now() + timedelta(seconds=300),
        capabilities=["files"],
        epoch=3,
        **fields,
    )


@asynccontextmanager
async def answering(controller: Controller, failure: Failure | None = None) -> AsyncIterator[None]:
    """A host whose files are all empty, or all refused."""

    async def answer_all() -> bool:
        for question in await in_database(file_questions.take, controller.id, 3):
            await in_database(
                file_questions.answer,
                controller.id,
                FileChunk(reply_to=question.id, identity="1:2", failure=failure),
            )
            await doorbells.ring_question(question.id)
        return False

    task = asyncio.create_task(await_until(answer_all, 60, "nothing"))
    try:
        yield
    finally:
        task.cancel()


async def start(project_id: UUID) -> MonitorStatus:
    return await monitor_start(project_id, str(uuid4()), "file", "/a.log")


async def test_a_project_has_no_more_active_monitors_than_it_may(settings: Any) -> None:
    settings.MAX_MONITORS = 2
    controller = await in_database(online)
    async with answering(controller):
        first = await start(controller.project_id)
        outcomes = await asyncio.gather(
            *(start(controller.project_id) for _ in range(4)), return_exceptions=True
        )
        refused = [outcome for outcome in outcomes if isinstance(outcome, MonitorLimitReached)]
        assert len(refused) == 3
        assert {error.code for error in refused} == {"MONITOR_LIMIT_REACHED"}
        assert all(str(first.session_id) in error.hint for error in refused)
        await monitor_stop(controller.project_id, str(first.session_id), save_log=True)
        await start(controller.project_id)
        with pytest.raises(MonitorLimitReached):
            await start(controller.project_id)


@pytest.mark.parametrize(
    "code", ["PATH_NOT_ALLOWED", "LOG_DIRECTORY_UNUSABLE", "LOG_DIRECTORY_FOREIGN"]
)
async def test_what_is_wrong_with_a_log_directory_is_told_at_every_call(code: str) -> None:
    controller = await in_database(online)
    async with answering(controller):
        monitor = await start(controller.project_id)
    async with answering(controller, Failure(code=code, message="no")):
        with pytest.raises(Forbidden) as at_start:
            await start(controller.project_id)
        with pytest.raises(Forbidden) as later:
            await monitor_read(controller.project_id, str(monitor.session_id))
    assert (at_start.value.code, later.value.code) == (code, code)


def test_a_foreign_log_directory_is_said_to_be_of_none_of_three_users() -> None:
    told = str(LogDirectoryForeign())
    assert all(whose in told for whose in ("the daemon's user", "the user of programs", "root"))


@pytest.mark.parametrize(
    ("log_roots", "said"),
    [
        (["/var/log", "/srv/logs"], "Open on this host: /var/log, /srv/logs."),
        (None, "--log-root)."),
    ],
)
async def test_a_refused_path_is_told_which_directories_are_open(
    log_roots: list[str] | None, said: str
) -> None:
    controller = await in_database(online, log_roots=log_roots)
    async with answering(controller, Failure(code="PATH_NOT_ALLOWED", message="no")):
        with pytest.raises(PathNotAllowed) as refused:
            await start(controller.project_id)
    assert refused.value.hint.endswith(said)
    with pytest.raises(PathNotAllowed) as unfit:
        await monitor_start(controller.project_id, str(uuid4()), "file", "/a\0")
    assert unfit.value.hint == refused.value.hint
