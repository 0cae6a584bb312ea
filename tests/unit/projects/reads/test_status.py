"""Looking at sessions and hosts changes nothing, and shows a project only what is its own."""

import asyncio
from datetime import timedelta
from uuid import uuid4

import pytest
from django.utils import timezone

from controller_client.protocol.session_state import SessionState
from projects.audit.log import audit
from projects.errors.hosts import ControllerNotFound
from projects.errors.sessions import SessionNotFound
from projects.models import CommandSession, Controller
from projects.output import log as output_log
from projects.output.log import NewChunk
from projects.reads.lists import controller_list, session_list
from projects.reads.status import session_get, session_read_output
from projects.storage.access import in_database
from projects.wakeups.doorbells import ring_session
from tests.support.rows import make_controller, make_session

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def controller() -> Controller:
    return make_controller(lease_expires_at=timezone.now() + timedelta(minutes=1))


@pytest.fixture
def session(controller: Controller) -> CommandSession:
    session = make_session(controller, started_by="token:bot")
    _print(session, b"hello\r\n")
    return session


def _print(session: CommandSession, data: bytes, offset: int = 0) -> None:
    output_log.append([NewChunk(session.id, "stdout", offset, offset, data)])
    CommandSession.objects.filter(id=session.id).update(stdout_next_offset=offset + len(data))


@pytest.mark.requirement("S4.R5.1", "S4.R5.3", "S4.R5.4")
async def test_any_offset_can_be_read_again_and_past_the_end_is_empty(
    session: CommandSession,
) -> None:
    whole = await session_read_output(session.project_id, session.id)
    assert (whole.output, whole.next_offset, whole.total_bytes, whole.state) == (
        "hello\n",
        7,
        7,
        "running",
    )
    assert (await session_read_output(session.project_id, session.id, offset=2)).output == "llo\n"
    past = await session_read_output(session.project_id, session.id, offset=900)
    assert (past.output, past.offset, past.next_offset) == ("", 7, 7)
    assert (await in_database(CommandSession.objects.get, id=session.id)).shown_offset == 0


async def test_a_read_waits_for_output_that_is_not_there_yet(session: CommandSession) -> None:
    call = asyncio.create_task(
        session_read_output(session.project_id, session.id, offset=7, wait_seconds=20)
    )
    await asyncio.sleep(0)
    await in_database(_print, session, b"late", 7)
    await ring_session(session.id)
    assert (await call).output == "late"


async def test_a_read_of_an_ended_session_does_not_wait(session: CommandSession) -> None:
    await in_database(
        CommandSession.objects.filter(id=session.id).update, state=SessionState.EXITED, exit_code=0
    )
    result = await session_read_output(session.project_id, session.id, offset=7, wait_seconds=20)
    assert (result.output, result.state, result.exit_code) == ("", "exited", 0)


async def test_lists_are_newest_first_paged_and_of_the_own_project(
    controller: Controller, session: CommandSession
) -> None:
    def more() -> None:
        for number in range(3):
            make_session(
                controller,
                SessionState.EXITED,
                command=f"c{number}",
                created_at=timezone.now() + timedelta(seconds=number + 1),
            )
        make_session(make_controller("elsewhere"))

    await in_database(more)
    first = await session_list(session.project_id, limit=2)
    second = await session_list(session.project_id, limit=2, before=first.next_before)
    assert [status.command for status in (*first.sessions, *second.sessions)] == [
        "c2",
        "c1",
        "c0",
        "cat",
    ]
    active = await session_list(session.project_id, active_only=True, controller=controller.name)
    assert [(status.session_id, status.state, status.started_by) for status in active.sessions] == [
        (session.id, "running", "token:bot")
    ]
    with pytest.raises(ControllerNotFound):
        await session_list(session.project_id, controller="elsewhere")


async def test_only_a_page_that_has_a_next_one_names_it(
    controller: Controller, session: CommandSession
) -> None:
    def more() -> None:
        for number in range(3):
            make_session(controller, created_at=timezone.now() + timedelta(seconds=number + 1))

    await in_database(more)
    for limit, pages in ((1, 4), (2, 2), (3, 2), (4, 1), (5, 1)):
        sizes: list[int] = []
        before = None
        while not sizes or before is not None:
            page = await session_list(session.project_id, limit=limit, before=before)
            sizes.append(len(page.sessions))
            before = page.next_before
        assert (len(sizes), sum(sizes), min(sizes) > 0) == (pages, 4, True), limit


async def test_a_session_shows_its_tail_and_its_receipts(session: CommandSession) -> None:
    await in_database(audit, "token:bot", "session.start", (session.project_id, None, session.id))
    # A monitor of another project may have this id: its caller chose it.
    await in_database(audit, "token:them", "monitor.start", (uuid4(), None, session.id))
    details = await session_get(session.project_id, session.id)
    assert (details.tail, details.lifecycle) == ("hello\n", "RUNNING")
    assert [(receipt.actor, receipt.action) for receipt in details.receipts] == [
        ("token:bot", "session.start")
    ]
    with pytest.raises(SessionNotFound):
        await session_get(uuid4(), session.id)


async def test_hosts_are_online_while_their_lease_runs(controller: Controller) -> None:
    await in_database(
        make_controller, "gone", project=await in_database(lambda: controller.project)
    )
    assert [
        (host.name, host.online)
        for host in (await controller_list(controller.project_id)).controllers
    ] == [("gone", False), ("host", True)]


async def test_standard_error_is_read_by_its_own_offsets(session: CommandSession) -> None:
    def complain() -> None:
        output_log.append([NewChunk(session.id, "stderr", 0, 9, b"oh no\n")])
        CommandSession.objects.filter(id=session.id).update(
            stderr_next_offset=6, kind="background", warning="pipes"
        )

    await in_database(complain)
    found = await session_read_output(session.project_id, session.id, offset=3, stream="stderr")
    assert (found.output, found.offset, found.next_offset, found.total_bytes) == ("no\n", 3, 6, 6)
    details = await session_get(session.project_id, session.id)
    assert (details.stderr_tail, details.kind, details.warning) == (
        "oh no\n",
        "background",
        "pipes",
    )
    assert "read_output" in details.hint


async def test_looking_at_a_background_session_keeps_it_from_being_idle(
    session: CommandSession,
) -> None:
    long_ago = timezone.now() - timedelta(hours=1)
    for look in (session_get, session_read_output):
        await in_database(
            CommandSession.objects.filter(id=session.id).update,
            kind="background",
            touched_at=long_ago,
        )
        await look(session.project_id, session.id)
        await in_database(session.refresh_from_db)
        assert session.touched_at > long_ago
