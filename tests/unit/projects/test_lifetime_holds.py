"""The clock of a lifetime stands while a person has the keyboard, and its host is told so."""

from collections.abc import AsyncIterator
from datetime import timedelta
from uuid import UUID

import pytest
from django.utils import timezone

from controller_client.protocol.messages import Failure, LifetimeReport, PauseLifetime
from projects.link.inbound import hello as greeting
from projects.models import CommandSession, Controller, ControllerCommand, Project
from projects.sessions import lifetimes
from projects.sessions.answers.hints import in_iso
from projects.sessions.interactive import (
    controller_send_input,
    controller_start_interactive_command,
    session_hand_back,
    session_take_over,
)
from projects.sessions.snapshot import session_snapshot
from projects.sessions.transactions.control import take_over
from projects.storage.access import in_database
from projects.upkeep.sweeper import LIFETIME_SLACK_SECONDS, end_overdue
from tests.support.hosts.acting_host import ActingHost
from tests.support.rows import make_controller, make_hello, make_session
from tests.support.waiting import await_until

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def controller() -> Controller:
    return make_controller(
        epoch=1,
        capabilities=[lifetimes.CAPABILITY],
        lease_expires_at=timezone.now() + timedelta(hours=1),
    )


@pytest.fixture
async def host(controller: Controller) -> AsyncIterator[ActingHost]:
    async with ActingHost(controller, on_start=lambda _: b"$ ") as acting:
        yield acting


@pytest.fixture
async def session_id(project_id: UUID, host: ActingHost) -> UUID:
    return (await controller_start_interactive_command(project_id, "sh")).session_id


def _pauses(host: ActingHost) -> list[tuple[bool, float]]:
    return [
        (message.is_paused, message.max_seconds)
        for message in host.commands
        if isinstance(message, PauseLifetime)
    ]


async def test_the_clock_stands_from_the_take_over_to_the_hand_back(
    project_id: UUID, session_id: UUID, host: ActingHost
) -> None:
    said = await session_take_over(project_id, session_id, operator="admin:ada")
    assert said.startswith("Its lifetime does not run while you have the keyboard")
    paused = await in_database(session_snapshot, project_id, session_id)
    assert paused.lifetime_clock.is_paused(timezone.now())
    assert (
        "Its lifetime does not run meanwhile."
        in (await controller_send_input(project_id, session_id)).hint
    )
    await session_hand_back(project_id, session_id, operator="admin:ada")
    await await_until(lambda: len(_pauses(host)) == 2, 30, "the host to hear of the hand back")
    assert _pauses(host) == [(True, 1800.0), (False, 1800.0)]
    row = await in_database(CommandSession.objects.get, id=session_id)
    assert row.taken_over_by == ""


@pytest.mark.parametrize(
    ("max_minutes", "capabilities"),
    [(0, [lifetimes.CAPABILITY]), (30, ["pty"])],
    ids=["the project lets it not stand", "an old daemon"],
)
async def test_a_lifetime_that_cannot_pause_sends_nothing_and_says_it_runs_on(
    project_id: UUID, session_id: UUID, host: ActingHost, max_minutes: int, capabilities: list[str]
) -> None:
    await in_database(Project.objects.filter(id=project_id).update, max_pause_minutes=max_minutes)
    await in_database(
        Controller.objects.filter(id=host.controller.id).update, capabilities=capabilities
    )
    said = await session_take_over(project_id, session_id, operator="admin:ada")
    now = await in_database(session_snapshot, project_id, session_id)
    assert now.expires_at is not None
    assert said.startswith(
        f"Its lifetime runs on, until {in_iso(now.expires_at)}: its host cannot stop it"
    )
    assert (
        f"runs on meanwhile, until {in_iso(now.expires_at)}"
        in (await controller_send_input(project_id, session_id)).hint
    )
    assert _pauses(host) == []


async def test_a_holder_too_old_to_pause_keeps_counting_and_the_answer_says_so(
    project_id: UUID, session_id: UUID, host: ActingHost
) -> None:
    host.on_pause = lambda _: Failure(code="HOLDER_TOO_OLD", message="started by an older daemon")
    assert "Its lifetime runs on" in await session_take_over(
        project_id, session_id, operator="admin:ada"
    )


async def test_the_clock_runs_again_once_the_host_says_so(
    project_id: UUID, session_id: UUID, host: ActingHost
) -> None:
    host.on_pause = lambda message: LifetimeReport(
        left_seconds=60.0, is_paused=False, pause_left_seconds=message.max_seconds
    )
    assert "Its lifetime runs on" in await session_take_over(
        project_id, session_id, operator="admin:ada"
    )
    now = await in_database(session_snapshot, project_id, session_id)
    assert (now.lifetime_clock.is_paused(timezone.now()), now.lifetime_clock.paused_at) == (
        False,
        None,
    )


async def test_the_end_is_what_the_host_reports_also_while_the_clock_stands(
    project_id: UUID, session_id: UUID, host: ActingHost
) -> None:
    host.on_pause = lambda message: LifetimeReport(
        left_seconds=60.0, is_paused=message.is_paused, pause_left_seconds=30.0
    )
    before = timezone.now()
    await session_take_over(project_id, session_id, operator="admin:ada")
    row = await in_database(CommandSession.objects.get, id=session_id)
    clock = row.lifetime_clock
    assert clock.paused_at is not None
    for later, end in ((0, 60), (10, 70), (30, 90), (80, 90)):
        expires_at = clock.expires_at(clock.paused_at + timedelta(seconds=later))
        assert expires_at == clock.paused_at + timedelta(seconds=end)
    assert not clock.is_paused(clock.paused_at + timedelta(seconds=30))
    assert clock.expires_at_latest(before) == clock.paused_at + timedelta(seconds=90)


def test_two_causes_hold_the_clock_until_both_are_gone() -> None:
    session = make_session(
        make_controller(capabilities=[lifetimes.CAPABILITY]), started_by="agent:1"
    )
    project_id = session.project_id
    lifetimes.hold(session, lifetimes.TAKE_OVER)
    lifetimes.hold_started_by(project_id, "agent:1", "approval of 1")
    lifetimes.hold_started_by(project_id, "agent:2", "approval of 2")
    lifetimes.release(session, lifetimes.TAKE_OVER)
    lifetimes.release_all("approval of 2")
    lifetimes.release_all("approval of 1")
    sent = [
        _decoded(command)
        for command in ControllerCommand.objects.filter(session=session).order_by("seq")
    ]
    assert [message.is_paused for message in sent] == [True, True, True, False]


def _decoded(command: ControllerCommand) -> PauseLifetime:
    from controller_client.protocol.codec import decode_from_server
    from projects.storage.sealing import open_sealed

    message = decode_from_server.decode(open_sealed(command.body or b""))
    assert isinstance(message, PauseLifetime)
    return message


def test_an_old_daemon_that_comes_back_is_not_sent_what_it_does_not_know() -> None:
    controller = make_controller(capabilities=[lifetimes.CAPABILITY])
    session = make_session(controller)
    take_over(session.project_id, session.id, "admin:ada")
    greeting.hello(controller.id, make_hello(capabilities=["pty"]))
    command = ControllerCommand.objects.get(session=session)
    assert (command.failure_code, command.body) == ("HOST_TOO_OLD", None)


@pytest.mark.parametrize(("away_seconds", "is_ended"), [(1000, False), (2200, True)])
def test_an_offline_host_with_a_paused_lifetime_keeps_the_whole_pause(
    away_seconds: float, is_ended: bool
) -> None:
    began = timezone.now() - timedelta(seconds=away_seconds + LIFETIME_SLACK_SECONDS)
    controller = make_controller(capabilities=[lifetimes.CAPABILITY], lease_expires_at=began)
    session = make_session(
        controller, "RUNNING", started_at=began, created_at=began, lifetime_seconds=300.0
    )
    take_over(session.project_id, session.id, "admin:ada")
    assert end_overdue(session.id) is is_ended
