"""Stopping monitors: the log that stays has its reason, and the reason is one that is published."""

import re
from typing import Any
from uuid import uuid4

import pytest

from controller_client.protocol.messages import DeleteFile, Failure, FileDeleted
from projects.errors.calls import RequestIdReused
from projects.errors.hosts import ControllerOffline, ControllerRevoked
from projects.errors.server import StorageUnavailable
from projects.models import Controller, Monitor
from projects.monitors import stop
from projects.monitors.errors import HostSilent, HostTooOld, MonitorNotFound
from projects.monitors.stop import MonitorEnd, monitor_stop
from projects.storage.access import in_database

pytestmark = pytest.mark.django_db(transaction=True)


def _published() -> set[str]:
    """The reasons that the description of the result lists."""
    text = MonitorEnd.model_fields["log_kept_reason"].description or ""
    return set(re.findall(r"[a-z]+(?:_[a-z]+)+", text))


def _monitor(controller: Controller) -> Monitor:
    return Monitor.objects.create(
        project_id=controller.project_id,
        controller=controller,
        session_id=uuid4(),
        log_file="/a.log",
        file_identity="1:2",
    )


def _host(monkeypatch: pytest.MonkeyPatch, says: str | Exception | None) -> list[DeleteFile]:
    """A host that deletes the log, refuses to with a code, or cannot be asked."""
    asked: list[DeleteFile] = []

    async def answer(_host: Any, question: DeleteFile) -> FileDeleted:
        asked.append(question)
        if isinstance(says, Exception):
            raise says
        failure = None if says is None else Failure(code=says, message="why")
        return FileDeleted(reply_to=question.id, failure=failure)

    monkeypatch.setattr(stop, "delete_file", answer)
    return asked


SAID: list[tuple[str | Exception | None, str | None]] = [
    (None, None),
    ("NOT_MANAGED", "not_managed"),
    ("NOT_OWNED", "not_owned"),
    ("OTHER_FILE", "other_file"),
    ("FILE_NOT_FOUND", "file_not_found"),
    ("DELETE_FAILED", "delete_failed"),
    ("FILE_READ_ERROR", "delete_failed"),
    ("", "delete_failed"),
    ("NOT_MANAGED\0", "delete_failed"),
    ("x" * 10_000, "delete_failed"),
    (ControllerOffline("h"), "controller_offline"),
    (ControllerRevoked("h"), "controller_revoked"),
    (HostSilent(), "host_silent"),
    (HostTooOld("h"), "host_too_old"),
]
# Why no host is asked at all: test_stop.py tries these.
ASKED_NOBODY = {"save_log", "scope_missing"}


def test_every_reason_that_is_published_is_tried_here() -> None:
    assert {reason for _, reason in SAID if reason} | ASKED_NOBODY == _published()


async def test_whatever_a_host_says_the_monitor_stops_with_a_published_reason(
    monkeypatch: pytest.MonkeyPatch, controller: Controller
) -> None:
    for says, reason in SAID:
        monitor = await in_database(_monitor, controller)
        asked = _host(monkeypatch, says)
        ended = await monitor_stop(monitor.project_id, str(monitor.session_id))
        assert (ended.log_kept_reason, ended.log_deleted) == (reason, reason is None), says
        assert ended.session_duration_seconds > 0
        assert [(question.path, question.identity) for question in asked] == [("/a.log", "1:2")]
        with pytest.raises(MonitorNotFound):
            await monitor_stop(monitor.project_id, str(monitor.session_id))


async def test_a_stop_without_storage_is_no_stop_and_can_be_repeated(
    monkeypatch: pytest.MonkeyPatch, controller: Controller
) -> None:
    monitor = await in_database(_monitor, controller)
    name, request_id = str(monitor.session_id), uuid4()
    _host(monkeypatch, StorageUnavailable())
    with pytest.raises(StorageUnavailable):
        await monitor_stop(monitor.project_id, name, request_id=request_id)
    assert (await in_database(Monitor.objects.get, id=monitor.id)).status == Monitor.Status.ACTIVE
    asked = _host(monkeypatch, None)
    ended = await monitor_stop(monitor.project_id, name, request_id=request_id)
    assert ended.log_deleted
    assert await monitor_stop(monitor.project_id, name, request_id=request_id) == ended
    assert len(asked) == 1
    with pytest.raises(RequestIdReused):
        await monitor_stop(monitor.project_id, name, save_log=True, request_id=request_id)
