"""Lists by pages: rows that share a time are on one page, and no row is lost or shown twice."""

from datetime import UTC, datetime, timedelta
from uuid import UUID, uuid4

import pytest

from controller_client.protocol.session_state import SessionState
from projects.models import Controller, Monitor
from projects.reads import pages
from projects.reads.lists import monitor_list, session_list
from projects.reads.pages import whole_page
from projects.storage.access import in_database
from tests.support.rows import make_controller, make_session

pytestmark = pytest.mark.django_db(transaction=True)

_BEGIN = datetime(2026, 3, 1, 12, tzinfo=UTC)
# One, four, one and two rows of the same microsecond; text that ends in zeros is compared, too.
_MICROSECONDS = (7, 5, 5, 5, 5, 1, 0, 0)


def _times() -> list[datetime]:
    return [_BEGIN + timedelta(microseconds=one) for one in _MICROSECONDS]


def _make_sessions(controller: Controller) -> set[UUID]:
    return {make_session(controller, SessionState.EXITED, created_at=time).id for time in _times()}


def _make_monitors(controller: Controller) -> set[UUID]:
    made = [
        Monitor.objects.create(
            project_id=controller.project_id,
            controller=controller,
            session_id=uuid4(),
            session_type="file",
            log_file="/var/log/app.log",
            metadata={},
            file_identity="1:2",
            started_at=time,
        )
        for time in _times()
    ]
    return {monitor.session_id for monitor in made}


@pytest.mark.parametrize(
    ("limit", "sizes"),
    [
        (1, [1, 4, 1, 2]),
        (2, [5, 3]),
        (4, [5, 3]),
        (5, [5, 3]),
        (6, [6, 2]),
        (7, [8]),
        (8, [8]),
        (9, [8]),
    ],
)
async def test_rows_of_one_time_are_on_one_page(limit: int, sizes: list[int]) -> None:
    controller = await in_database(make_controller)
    sessions = await in_database(_make_sessions, controller)
    monitors = await in_database(_make_monitors, controller)
    project = controller.project_id

    async def session_page(before: datetime | None) -> tuple[list[UUID], datetime | None]:
        page = await session_list(project, limit=limit, before=before)
        return [one.session_id for one in page.sessions], page.next_before

    async def monitor_page(before: datetime | None) -> tuple[list[UUID], datetime | None]:
        page = await monitor_list(project, limit=limit, before=before)
        return [one.session_id for one in page.monitors], page.next_before

    for page_of, made in ((session_page, sessions), (monitor_page, monitors)):
        found, before = await page_of(None)
        pages_found = [found]
        while before is not None:
            found, before = await page_of(before)
            pages_found.append(found)
        assert [len(one) for one in pages_found] == sizes
        assert {one for found in pages_found for one in found} == made


def _listed(
    times: list[int], limit: int, *, newer_later: tuple[int, ...] = ()
) -> tuple[list[int], int | None, list[int]]:
    """Return the page, the place of the next one, and how many rows each statement wanted."""
    asked: list[int] = []

    def newest(most: int) -> list[int]:
        rows = [*newer_later, *times] if asked else times
        asked.append(most)
        return rows[:most]

    rows, edge = whole_page(newest, limit, lambda row: _BEGIN + timedelta(microseconds=row))
    return list(rows), None if edge is None else (edge - _BEGIN).microseconds, asked


def test_only_a_tie_at_the_edge_reads_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pages, "MAX_TIED", 3)
    assert _listed([9, 9, 8, 7], 2) == ([9, 9], 9, [3])
    assert _listed([9, 8, 8, 7], 2) == ([9, 8, 8], 8, [3, 6])
    assert _listed([9, 8, 8], 2) == ([9, 8, 8], None, [3, 6])


def test_a_page_goes_on_to_a_limit_only(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pages, "MAX_TIED", 3)
    assert _listed([9] * 5, 2) == ([9] * 5, None, [3, 6])
    assert _listed([9] * 6 + [8], 2) == ([9] * 5, 9, [3, 6])


def test_rows_that_come_between_two_reads_lose_none() -> None:
    assert _listed([9, 8, 8, 7], 2, newer_later=(10,))[:2] == ([10, 9], 9)
    assert _listed([9, 8, 8, 7], 2, newer_later=(10, 10))[:2] == ([10, 10], 10)
