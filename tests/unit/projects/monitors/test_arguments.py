"""What a monitor may be started with, and what becomes of a start that is repeated."""

from typing import Any
from uuid import UUID, uuid4

import pytest

from projects.errors.calls import InvalidArgument, RequestIdReused
from projects.models import AuditEvent, Controller, Monitor
from projects.monitors.errors import InvalidSessionId, PathNotAllowed, SessionAlreadyExists
from projects.monitors.start import (
    MAX_METADATA_CHARS,
    MAX_PATH_CHARS,
    MonitorStatus,
    monitor_start,
)
from projects.storage.access import in_database
from tests.support.rows import make_controller
from tests.unit.projects.monitors.test_start import answering, online

pytestmark = pytest.mark.django_db(transaction=True)

_ID = "0b7e54ad-3c0f-4d8e-9a21-5f6c8d7e9b10"


async def _start(project_id: UUID, session_id: object, **fields: Any) -> MonitorStatus:
    given = {"session_type": "file", "log_file": "/a.log", **fields}
    return await monitor_start(project_id, str(session_id), **given)


@pytest.mark.parametrize("name", ["", "1", _ID.upper(), _ID.replace("-", ""), f"{_ID} "])
async def test_an_id_is_a_plain_uuid(name: str) -> None:
    with pytest.raises(InvalidSessionId):
        await _start(uuid4(), name)


@pytest.mark.parametrize(
    "metadata",
    [
        {"note": "x" * (MAX_METADATA_CHARS - 3)},
        {"x" * MAX_METADATA_CHARS: "y"},
        {"note": "a\0"},
        {"a\0": "note"},
        {"note": "\udfff"},
        {"\ud800": "note"},
    ],
)
async def test_metadata_is_text_that_a_row_can_hold(metadata: dict[str, str]) -> None:
    with pytest.raises(InvalidArgument, match="metadata: must be texts without NUL"):
        await _start(uuid4(), uuid4(), metadata=metadata)


async def test_metadata_as_long_as_it_may_be_is_kept() -> None:
    controller = await in_database(online)
    metadata = {"note": "x" * (MAX_METADATA_CHARS - 4)}
    async with answering(controller):
        await _start(controller.project_id, uuid4(), metadata=metadata)
    assert (await in_database(Monitor.objects.get)).metadata == metadata


@pytest.mark.parametrize("path", ["/a\0", "/\udfff", "/" + "x" * MAX_PATH_CHARS])
async def test_a_path_that_no_row_can_hold_is_closed_without_a_question(path: str) -> None:
    controller = await in_database(online)
    with pytest.raises(PathNotAllowed):
        await _start(controller.project_id, uuid4(), log_file=path)


async def test_a_start_that_is_repeated_under_its_id_gets_the_first_answer() -> None:
    controller = await in_database(online)
    name, request_id = uuid4(), uuid4()
    async with answering(controller):
        first = await _start(controller.project_id, name, request_id=request_id)
        assert await _start(controller.project_id, name, request_id=request_id) == first
        for other in ({"at_end": True}, {"log_file": "/b.log"}, {"metadata": {"a": "b"}}):
            with pytest.raises(RequestIdReused):
                await _start(controller.project_id, name, request_id=request_id, **other)
        with pytest.raises(SessionAlreadyExists):
            await _start(controller.project_id, name, request_id=uuid4())
        with pytest.raises(SessionAlreadyExists):
            await _start(controller.project_id, name)
    assert await in_database(Monitor.objects.count) == 1
    assert await in_database(AuditEvent.objects.filter(action="monitor.start").count) == 1


async def test_one_id_names_a_monitor_in_each_project() -> None:
    def other_host() -> Controller:
        fields = ("lease_expires_at", "capabilities", "epoch")
        return make_controller("other", **{name: getattr(first, name) for name in fields})

    first, name = await in_database(online), uuid4()
    second = await in_database(other_host)
    for controller in (first, second):
        async with answering(controller):
            await _start(controller.project_id, name)
    assert await in_database(Monitor.objects.filter(session_id=name).count) == 2
