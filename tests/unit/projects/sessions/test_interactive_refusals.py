"""Calls on interactive sessions that are refused: each says why, and leaves nothing behind."""

import asyncio
from collections.abc import AsyncIterator
from datetime import timedelta
from functools import partial
from uuid import UUID

import pytest
from django.db import DatabaseError, connection
from django.utils import timezone

from controller_client.protocol.session_state import SessionState
from projects.errors.base import ControllerActionError
from projects.errors.calls import InvalidArgument
from projects.errors.hosts import (
    ControllerAmbiguous,
    ControllerNotFound,
    ControllerOffline,
    NoControllerEnrolled,
)
from projects.errors.inputs import ResizeRefused
from projects.errors.limits import SessionLimitReached
from projects.errors.secrets import SecretNotFound
from projects.errors.sessions import SessionEnded, SessionNotFound
from projects.models import AuditEvent, CommandSession, Controller, ControllerCommand, Project
from projects.sessions.answers.results import InteractiveCommandResult
from projects.sessions.background import background_start
from projects.sessions.interactive import (
    controller_send_input,
    controller_start_interactive_command,
    controller_terminate_interactive_command,
    session_resize,
)
from projects.sessions.jobs import job_submit
from projects.sessions.one_shot import command_execute
from projects.sessions.transactions.control import hand_back, take_over
from projects.storage.access import in_database
from tests.support.hosts.acting_host import ActingHost
from tests.support.rows import make_controller, make_session

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
async def host(controller: Controller) -> AsyncIterator[ActingHost]:
    async with ActingHost(controller, on_start=lambda _: b"Name: ") as acting:
        yield acting


@pytest.mark.requirement("S3.R3.4", "S3.C1.2")
async def test_the_limit_of_sessions_names_the_active_one_and_holds_in_a_race(
    project_id: UUID, host: ActingHost
) -> None:
    starts = [controller_start_interactive_command(project_id, "cat") for _ in range(8)]
    results = await asyncio.gather(*starts, return_exceptions=True)
    started = [result for result in results if isinstance(result, InteractiveCommandResult)]
    refused = [result for result in results if isinstance(result, SessionLimitReached)]
    assert (len(started), len(refused)) == (1, 7)
    assert all(refusal.active == (str(started[0].session_id),) for refusal in refused)


async def test_a_larger_limit_gives_each_session_its_own_place(
    project_id: UUID, host: ActingHost
) -> None:
    await in_database(Project.objects.filter(id=project_id).update, max_interactive_sessions=3)
    results = await asyncio.gather(
        *(controller_start_interactive_command(project_id, "cat") for _ in range(3))
    )
    assert len({result.session_id for result in results}) == 3


async def test_sessions_of_another_project_do_not_exist(project_id: UUID, host: ActingHost) -> None:
    started = await controller_start_interactive_command(project_id, "cat")
    stranger = (await in_database(Project.objects.create, name="stranger")).id
    for call in (
        controller_send_input(stranger, started.session_id, "x\n"),
        controller_send_input(stranger, started.session_id),
        controller_send_input(stranger, started.session_id, terminate=True),
        session_resize(stranger, started.session_id, rows=5, cols=5),
    ):
        with pytest.raises(SessionNotFound):
            await call
    assert (
        await controller_send_input(project_id, started.session_id, "fine\n")
    ).output == "fine\n"


async def test_a_session_that_is_over_says_so_while_its_host_is_away(
    controller: Controller, project_id: UUID
) -> None:
    session = await in_database(make_session, controller, SessionState.EXITED)
    await in_database(
        Controller.objects.filter(id=controller.id).update,
        lease_expires_at=timezone.now() - timedelta(hours=1),
    )
    with pytest.raises(SessionEnded):
        await controller_send_input(project_id, session.id, "x\n")
    with pytest.raises(SessionEnded):
        await session_resize(project_id, session.id, rows=5, cols=5)


async def test_a_size_for_pipes_is_refused_and_leaves_nothing(
    controller: Controller, project_id: UUID
) -> None:
    session = await in_database(make_session, controller, io_mode="pipe", rows=24, cols=80)
    with pytest.raises(ResizeRefused) as refused:
        await session_resize(project_id, session.id, rows=10, cols=10)
    assert refused.value.code == "NOT_A_TERMINAL"
    assert "ctrl-c" not in refused.value.hint
    await in_database(session.refresh_from_db)
    assert (session.rows, session.cols) == (24, 80)
    assert not await in_database(AuditEvent.objects.exists)


async def test_a_host_that_is_away_refuses_at_once_and_leaves_nothing(
    controller: Controller, project_id: UUID
) -> None:
    session = await in_database(make_session, controller)
    await in_database(
        Controller.objects.filter(id=controller.id).update,
        lease_expires_at=timezone.now() - timedelta(hours=1),
    )
    with pytest.raises(ControllerOffline):
        await controller_start_interactive_command(project_id, "true")
    with pytest.raises(ControllerOffline):
        await controller_send_input(project_id, session.id, "x\n")
    rows = await in_database(
        lambda: (
            ControllerCommand.objects.count(),
            AuditEvent.objects.count(),
            CommandSession.objects.count(),
        )
    )
    assert rows == (0, 0, 1)
    polled = await controller_send_input(project_id, session.id, wait_seconds=0)
    assert "out of reach" in polled.hint
    ended = await controller_send_input(project_id, session.id, terminate=True, wait_seconds=0)
    assert ended.is_alive
    assert await in_database(ControllerCommand.objects.filter(type="TERMINATE_CMD").count) == 1


async def test_a_project_needs_one_host_or_its_name(
    project_id: UUID, controller: Controller
) -> None:
    empty = (await in_database(Project.objects.create, name="empty")).id
    with pytest.raises(NoControllerEnrolled):
        await controller_start_interactive_command(empty, "true")
    project = await in_database(Project.objects.get, id=project_id)
    await in_database(
        make_controller,
        "second",
        project=project,
        lease_expires_at=timezone.now() + timedelta(minutes=1),
    )
    with pytest.raises(ControllerAmbiguous) as ambiguous:
        await controller_start_interactive_command(project_id, "true")
    assert "second" in ambiguous.value.hint
    with pytest.raises(ControllerNotFound):
        await controller_start_interactive_command(project_id, "true", controller="third")
    async with ActingHost(controller):
        assert (
            await controller_start_interactive_command(
                project_id, "cat", controller=str(controller.id)
            )
        ).is_alive


async def test_a_secret_that_is_not_there_types_nothing(project_id: UUID, host: ActingHost) -> None:
    started = await controller_start_interactive_command(project_id, "login")
    with pytest.raises(SecretNotFound):
        await controller_send_input(project_id, started.session_id, secret="sudo")
    with pytest.raises(InvalidArgument):
        await controller_send_input(project_id, started.session_id, "x", terminate=True)
    assert len(host.commands) == 1


@pytest.mark.sqlite
async def test_a_keyboard_is_not_handed_back_without_its_row(
    project_id: UUID, host: ActingHost
) -> None:
    started = await controller_start_interactive_command(project_id, "cat")
    await in_database(take_over, project_id, started.session_id, "admin:ada")
    before = await in_database(_traces, project_id)
    await in_database(_execute, _REFUSE_ROWS)
    try:
        for act in (take_over, partial(hand_back, note="done")):
            with pytest.raises((DatabaseError, ControllerActionError)):
                await in_database(act, project_id, started.session_id, "admin:bob")
    finally:
        await in_database(_execute, "DROP TRIGGER refuse_rows")
    assert await in_database(_traces, project_id) == before
    await in_database(hand_back, project_id, started.session_id, "admin:bob", "done")
    assert await in_database(_traces, project_id) != before


@pytest.mark.sqlite
async def test_what_cannot_be_put_on_record_is_not_done(project_id: UUID, host: ActingHost) -> None:
    started = await controller_start_interactive_command(project_id, "cat")
    before = await in_database(_traces, project_id)
    await in_database(_execute, _REFUSE_ROWS)
    try:
        for call in (
            controller_start_interactive_command(project_id, "true"),
            controller_send_input(project_id, started.session_id, "x\n"),
            controller_send_input(project_id, started.session_id, keys=["ctrl-c"]),
            controller_send_input(project_id, started.session_id, eof=True),
            session_resize(project_id, started.session_id, rows=5, cols=5),
            controller_terminate_interactive_command(project_id, started.session_id),
            command_execute(project_id, "true"),
            background_start(project_id, "true"),
            job_submit(project_id, "true"),
            in_database(take_over, project_id, started.session_id, "admin:ada"),
        ):
            with pytest.raises((DatabaseError, ControllerActionError)):
                await call
    finally:
        await in_database(_execute, "DROP TRIGGER refuse_rows")
    assert await in_database(_traces, project_id) == before


_REFUSE_ROWS = (
    "CREATE TRIGGER refuse_rows BEFORE INSERT ON projects_auditevent BEGIN SELECT "
    "RAISE(ABORT, 'no row'); END"
)


def _execute(statement: str) -> None:
    with connection.cursor() as cursor:
        cursor.execute(statement)


def _traces(project_id: UUID) -> tuple[list[dict[str, object]], int]:
    """All that an action leaves behind besides its row."""
    sessions = CommandSession.objects.filter(project_id=project_id).order_by("created_at")
    kept = [
        dict(row)
        for row in sessions.values("state", "input_seq", "rows", "ended_by", "taken_over_by")
    ]
    return kept, ControllerCommand.objects.count()
