"""Answers that did not arrive: what a repeat under the same ``request_id`` finds, by services,
session actions and last looks.
"""

from collections.abc import AsyncIterator
from functools import partial
from uuid import UUID, uuid4

import pytest

from controller_client.protocol.messages import Failure
from projects.errors.calls import RequestIdReused
from projects.errors.commands import StartFailed, StartUnconfirmed
from projects.models import Controller
from projects.reads.digests import session_digest
from projects.sessions.background import background_start, background_stop
from projects.sessions.interactive import (
    controller_send_input,
    controller_start_interactive_command,
    session_resize,
)
from projects.storage.access import in_database
from tests.support.hosts.acting_host import ActingHost
from tests.support.rows import make_session

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
async def host(controller: Controller) -> AsyncIterator[ActingHost]:
    async with ActingHost(controller, on_start=lambda _: b"Name: ") as acting:
        yield acting


@pytest.mark.parametrize("is_end", [False, True], ids=["poll", "terminate"])
async def test_a_repeat_shows_what_the_lost_answer_showed(
    project_id: UUID, host: ActingHost, is_end: bool
) -> None:
    started = await controller_start_interactive_command(project_id, "work")
    await host.say(host.output(str(started.session_id), b"news\r\n", is_waiting=False))
    request_id = uuid4()
    ask = partial(
        controller_send_input, project_id, started.session_id, terminate=is_end, wait_seconds=0.2
    )
    lost = await ask(request_id=request_id)
    assert (lost.offset, lost.output) == (6, "news\n")
    repeated = await ask(request_id=request_id)
    assert (repeated.offset, repeated.output) == (lost.offset, lost.output)
    after = await controller_send_input(project_id, started.session_id, wait_seconds=0)
    assert (after.offset, after.output) == (lost.next_offset, "")


async def test_an_id_of_a_poll_is_for_that_poll_alone(project_id: UUID, host: ActingHost) -> None:
    started = await controller_start_interactive_command(project_id, "work")
    request_id = uuid4()
    await controller_send_input(
        project_id, started.session_id, wait_seconds=0, request_id=request_id
    )
    for other in ({"terminate": True}, {"input_text": "x"}):
        with pytest.raises(RequestIdReused):
            await controller_send_input(
                project_id, started.session_id, wait_seconds=0, request_id=request_id, **other
            )
    assert len(host.commands) == 1


async def test_a_repeated_look_digests_the_same_output(project_id: UUID, host: ActingHost) -> None:
    started = await controller_start_interactive_command(project_id, "work")
    session_id, request_id = started.session_id, uuid4()
    first = await session_digest(project_id, session_id, request_id=request_id)
    await host.say(host.output(str(session_id), b"error: x\r\n", is_waiting=False))
    assert await session_digest(project_id, session_id, request_id=request_id) == first
    later = await session_digest(project_id, session_id, request_id=uuid4())
    assert (later.from_offset, later.error_count) == (6, 1)


@pytest.mark.parametrize(
    "code", ["RESOURCE_EXHAUSTED", "HOST_STOPPED", "PROGRAM_NOT_FOUND", "EXPIRED"]
)
async def test_a_start_that_began_nothing_is_tried_anew_under_its_id(
    project_id: UUID, host: ActingHost, code: str
) -> None:
    request_id = uuid4()
    start = partial(
        controller_start_interactive_command, project_id, "greet", request_id=request_id
    )
    host.on_start = lambda _: Failure(code=code, message="not now")
    for _ in range(2):
        with pytest.raises(StartFailed) as failed:
            await start()
        assert failed.value.code == code
    host.on_start = lambda _: b"Name: "
    started = await start()
    assert (await start()).session_id == started.session_id
    assert len(host.commands) == 3


async def test_a_repeated_end_of_what_never_began_says_so_again(
    project_id: UUID, controller: Controller
) -> None:
    # Nobody takes the command, so the start is still the server's.
    started = await controller_start_interactive_command(project_id, "later", wait_seconds=0)
    request_id = uuid4()
    said = [
        await background_stop(project_id, started.session_id, request_id=request_id)
        for _ in range(2)
    ]
    assert said[0].success
    assert said[1] == said[0]


async def test_a_resize_that_was_refused_is_refused_again(
    project_id: UUID, host: ActingHost
) -> None:
    started = await controller_start_interactive_command(project_id, "work")
    sized = partial(
        session_resize, project_id, started.session_id, rows=9, cols=9, request_id=uuid4()
    )
    first, second = await sized(), await sized()
    assert (first.state, second.state) == ("awaiting_input", "awaiting_input")
    assert len(host.commands) == 2


async def test_a_new_size_that_no_host_has_confirmed_is_not_told_as_done(
    project_id: UUID, controller: Controller
) -> None:
    session = await in_database(make_session, controller, io_mode="pty")
    sized = partial(session_resize, project_id, session.id, rows=9, cols=9, request_id=uuid4())
    unsettled = await sized(wait_seconds=0)
    assert unsettled.hint.startswith("The host has not confirmed the new size yet")
    async with ActingHost(controller) as late:
        settled = await sized()
    assert "not confirmed" not in settled.hint
    assert len(late.commands) == 1


async def test_an_input_that_no_host_has_confirmed_is_not_to_be_typed_again(
    project_id: UUID, controller: Controller
) -> None:
    session = await in_database(make_session, controller, io_mode="pty")
    typed = partial(
        controller_send_input, project_id, session.id, "yes\n", request_id=uuid4(), wait_seconds=0
    )
    untyped = await typed()
    assert untyped.hint.startswith("The host has not confirmed your input yet")
    # A call that only waits typed nothing.
    waited = await controller_send_input(project_id, session.id, "", wait_seconds=0)
    assert "not confirmed" not in waited.hint
    async with ActingHost(controller):
        assert "not confirmed" not in (await typed(wait_seconds=20)).hint


@pytest.mark.parametrize("request_id", [uuid4(), None], ids=["with id", "without"])
async def test_a_start_without_word_may_be_repeated_if_it_has_an_id(
    project_id: UUID,
    controller: Controller,
    request_id: UUID | None,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("projects.sessions.background.START_WAIT_SECONDS", 0.05)
    start = partial(background_start, project_id, "true", request_id=request_id)
    with pytest.raises(StartUnconfirmed) as unknown:
        await start()
    assert unknown.value.retryable is (request_id is not None)
    if request_id is not None:
        async with ActingHost(controller) as late:
            monkeypatch.setattr("projects.sessions.background.START_WAIT_SECONDS", 20.0)
            assert (await start()).pid
            assert len(late.commands) == 1
