"""The bytes that monitors have read: kept up to a limit, found by offset."""

import uuid
from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone

from projects.models import Monitor, MonitorChunk
from projects.monitors import log as monitor_log
from projects.storage import clock
from tests.support.rows import make_controller

pytestmark = pytest.mark.django_db


@pytest.fixture
def monitor() -> Monitor:
    controller = make_controller()
    return Monitor.objects.create(
        project_id=controller.project_id,
        controller=controller,
        session_id=uuid.uuid4(),
        session_type="file",
        log_file="/a",
        file_identity="1:2",
    )


def test_any_range_of_it_can_be_read(monitor: Monitor) -> None:
    data, offset = bytes(range(256)) * 400, 0
    for size in (1, 65_536, 7, 30_000, 6_856):
        monitor_log.append(monitor.id, offset, data[offset : offset + size])
        offset += size
    for start, end in (
        (0, offset),
        (1, 65_537),
        (65_000, 65_600),
        (offset - 1, offset),
        (5, 5),
        (offset, offset + 9),
    ):
        assert b"".join(monitor_log.pieces(monitor.id, start, end)) == data[start:end]


def test_many_chunks_are_read_in_order(monitor: Monitor) -> None:
    for number in range(50):
        monitor_log.append(monitor.id, number * 3, b"%03d" % number)
    assert b"".join(monitor_log.pieces(monitor.id, 0, 150)) == b"".join(
        b"%03d" % number for number in range(50)
    )


def test_the_oldest_goes_when_there_is_too_much(monitor: Monitor, settings: Any) -> None:
    settings.MONITOR_RETAINED_BYTES = 25
    for number in range(10):
        monitor_log.append(monitor.id, number * 10, b"0123456789")
    monitor.refresh_from_db()
    assert monitor.first_offset == 70
    assert b"".join(monitor_log.pieces(monitor.id, 70, 100)) == b"0123456789" * 3
    assert MonitorChunk.objects.count() == 3


def test_nothing_is_stored_of_nothing(monitor: Monitor) -> None:
    monitor_log.append(monitor.id, 0, b"")
    assert not MonitorChunk.objects.exists()


def test_what_stopped_monitors_read_goes_when_its_time_is_over(
    monitor: Monitor, settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings.COMMAND_RETENTION_SECONDS = 60
    monitor_log.append(monitor.id, 0, b"0123456789")
    rows = Monitor.objects.filter(id=monitor.id)
    rows.update(next_offset=10)
    monitor_log.forget_stopped()
    rows.update(status="stopped", stopped_at=timezone.now())
    monitor_log.forget_stopped()
    assert MonitorChunk.objects.exists()
    rows.update(stopped_at=timezone.now() - timedelta(seconds=61))
    with monkeypatch.context() as jumped:
        jumped.setattr(clock.STEADINESS, "_since", clock.time.monotonic())
        monitor_log.forget_stopped()
    assert MonitorChunk.objects.exists()
    monitor_log.forget_stopped()
    monitor.refresh_from_db()
    assert not MonitorChunk.objects.exists()
    assert monitor.first_offset == 10


@pytest.mark.usefixtures("days_ahead")
def test_a_server_whose_own_clock_is_ahead_forgets_nothing_early(monitor: Monitor) -> None:
    monitor_log.append(monitor.id, 0, b"0123456789")
    stopped = {"status": "stopped", "stopped_at": clock.now(), "next_offset": 10}
    Monitor.objects.filter(id=monitor.id).update(**stopped)
    monitor_log.forget_stopped()
    assert MonitorChunk.objects.exists()


def test_a_clock_that_has_just_jumped_takes_nothing_away(
    monitor: Monitor, monkeypatch: pytest.MonkeyPatch
) -> None:
    monitor_log.append(monitor.id, 0, b"0123456789")
    stopped = {"status": "stopped", "stopped_at": monitor.started_at - timedelta(days=9)}
    Monitor.objects.filter(id=monitor.id).update(**stopped, next_offset=10)
    monkeypatch.setattr(clock.STEADINESS, "_since", clock.time.monotonic())
    monitor_log.forget_stopped()
    assert MonitorChunk.objects.exists()
