"""A stop ends a monitor whatever becomes of its log, once, and says why the log stays."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from datetime import timedelta
from typing import Any
from uuid import UUID, uuid4

import pytest
from django.utils import timezone

from controller_client.protocol.messages import DeleteFile, FileDeleted
from projects.accounts.authentication import Caller
from projects.errors.calls import RequestIdReused
from projects.models import AuditEvent, Controller, Monitor
from projects.monitors import questions
from projects.monitors.errors import MonitorNotFound
from projects.monitors.stop import DELETE_SCOPE, MonitorEnd, monitor_stop
from projects.storage.access import in_database
from projects.wakeups import doorbells
from tests.support.rows import make_controller
from tests.support.waiting import await_until

pytestmark = pytest.mark.django_db(transaction=True)


def _monitor(**fields: Any) -> Monitor:
    host = make_controller(
        **{
            "lease_expires_at": timezone.now() + timedelta(seconds=300),
            "capabilities": ["files"],
            "epoch": 3,
            **fields,
        }
    )
    return Monitor.objects.create(
        project_id=host.project_id,
        controller=host,
        session_id=uuid4(),
        log_file="/a.log",
        file_identity="1:2",
        next_offset=7,
    )


def _caller(monitor: Monitor, *scopes: str) -> Caller:
    return Caller(monitor.project_id, "token:mcp", frozenset(scopes))


async def _stopped(monitor: Monitor, **fields: Any) -> MonitorEnd:
    return await monitor_stop(monitor.project_id, str(monitor.session_id), **fields)


@asynccontextmanager
async def _deleting(monitor: Monitor) -> AsyncIterator[list[DeleteFile]]:
    """The host of the monitor, with the questions that it was asked."""
    asked: list[DeleteFile] = []

    async def answer_all() -> bool:
        for question in await in_database(questions.take, monitor.controller_id, 3):
            assert isinstance(question, DeleteFile)
            asked.append(question)
            deleted = FileDeleted(reply_to=question.id)
            await in_database(questions.answer, monitor.controller_id, deleted)
            await doorbells.ring_question(question.id)
        return False

    task = asyncio.create_task(await_until(answer_all, 60, "nothing"))
    try:
        yield asked
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task


def _audited() -> list[str]:
    return list(AuditEvent.objects.order_by("seq").values_list("action", flat=True))


async def test_the_log_is_deleted_by_the_name_and_the_file_that_were_read() -> None:
    monitor = await in_database(_monitor)
    async with _deleting(monitor) as asked:
        ended = await _stopped(monitor, caller=_caller(monitor, DELETE_SCOPE))
    assert [(one.path, one.identity) for one in asked] == [("/a.log", "1:2")]
    assert (ended.log_deleted, ended.log_kept_reason, ended.total_bytes_processed) == (
        True,
        None,
        7,
    )
    assert ended.session_duration_seconds > 0
    assert await in_database(_audited) == ["monitor.delete_log", "monitor.stop"]
    row = await in_database(Monitor.objects.get)
    assert (row.status, row.stopped_by, row.log_deleted) == ("stopped", "token:mcp", True)


@pytest.mark.parametrize(
    ("scopes", "save_log", "reason"),
    [
        ((DELETE_SCOPE,), True, "save_log"),
        (("monitor:write",), True, "save_log"),
        (("monitor:write",), False, "scope_missing"),
    ],
)
async def test_a_log_that_is_not_to_go_is_asked_of_nobody(
    scopes: tuple[str, ...], save_log: bool, reason: str
) -> None:
    monitor = await in_database(_monitor)
    async with _deleting(monitor) as asked:
        ended = await _stopped(monitor, caller=_caller(monitor, *scopes), save_log=save_log)
    assert (ended.log_deleted, ended.log_kept_reason, asked) == (False, reason, [])
    assert await in_database(_audited) == ["monitor.stop"]
    row = await in_database(Monitor.objects.get)
    assert (row.status, row.log_deleted) == ("stopped", None if save_log else False)


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({"lease_expires_at": None}, "controller_offline"),
        ({"revoked_at": timezone.now()}, "controller_revoked"),
        ({"capabilities": ["pty"]}, "host_too_old"),
    ],
)
async def test_a_host_that_cannot_answer_holds_up_no_stop(
    fields: dict[str, Any], reason: str
) -> None:
    monitor = await in_database(lambda: _monitor(**fields))
    ended = await _stopped(monitor)
    assert (ended.status, ended.log_deleted, ended.log_kept_reason) == ("stopped", False, reason)


async def test_a_repeat_under_its_id_deletes_once_and_gets_the_first_answer() -> None:
    monitor, request_id = await in_database(_monitor), uuid4()
    async with _deleting(monitor) as asked:
        first = await _stopped(monitor, request_id=request_id)
        assert await _stopped(monitor, request_id=request_id) == first
        with pytest.raises(RequestIdReused):
            await _stopped(monitor, request_id=request_id, save_log=True)
        with pytest.raises(MonitorNotFound):
            await _stopped(monitor)
        with pytest.raises(MonitorNotFound):
            await _stopped(monitor, request_id=uuid4())
    assert len(asked) == 1


async def test_two_stops_at_once_under_one_id_have_one_answer() -> None:
    monitor, request_id = await in_database(_monitor), uuid4()
    async with _deleting(monitor):
        stops = (_stopped(monitor, request_id=request_id) for _ in range(2))
        first, second = await asyncio.gather(*stops)
    assert first == second
    assert (await in_database(_audited)).count("monitor.stop") == 1


async def test_a_monitor_of_another_project_is_not_stopped() -> None:
    monitor = await in_database(_monitor)
    other: Controller = await in_database(make_controller, "other")
    for project_id, session_id in (
        (other.project_id, monitor.session_id),
        (monitor.project_id, uuid4()),
    ):
        await _is_unknown(project_id, session_id)
    assert (await in_database(Monitor.objects.get)).status == "active"


async def _is_unknown(project_id: UUID, session_id: UUID) -> None:
    with pytest.raises(MonitorNotFound):
        await monitor_stop(project_id, str(session_id), save_log=True)
