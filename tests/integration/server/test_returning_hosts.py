"""A host that said goodbye a moment ago is waited for: its daemon may be restarted just now."""

import asyncio
import threading
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from datetime import timedelta
from uuid import UUID

import pytest
from django.db import transaction

from controller_client.protocol.messages import (
    Draining,
    InteractiveOutput,
    Message,
    Ping,
    ReadFile,
    Resize,
    SendInput,
    StartInteractiveCmd,
)
from projects.errors.hosts import ControllerOffline
from projects.models import CommandSession, Controller, ControllerCommand
from projects.monitors import questions
from projects.services import controller_send_input, controller_start_interactive_command
from projects.sessions import selectors
from projects.sessions.interactive import session_resize
from projects.sessions.transactions import returning
from projects.storage import clock
from projects.storage.access import in_database
from tests.support.hosts.consumer_server import enrolled
from tests.support.hosts.scripted_controller import scripted_controller
from tests.support.rows import make_hello, make_session, make_summary
from tests.support.waiting import await_until

pytestmark = pytest.mark.django_db(transaction=True)

Act = Callable[[UUID, CommandSession], Awaitable[object]]
_ACTS: dict[type[Message], Act] = {
    StartInteractiveCmd: lambda project, _: controller_start_interactive_command(project, "true"),
    SendInput: lambda project, session: controller_send_input(project, session.id, "x\n"),
    Resize: lambda project, session: session_resize(project, session.id, rows=9, cols=9),
    ReadFile: lambda _, session: questions.read_file(session.controller_id, ReadFile(path="/a")),
}


async def _left(port: int) -> tuple[CommandSession, str]:
    """A session of a host that has just said goodbye, and the host's credential."""
    controller, credential = await in_database(enrolled)
    session = await in_database(make_session, controller)
    async with scripted_controller(port, credential) as host:
        await host.hello(make_summary(session), capabilities=["files"])
        await host.send(Draining(reason="the controller is stopping", epoch=host.epoch))
        await await_until(lambda: in_database(_is_offline, controller.id), 30, "the goodbye")
    return session, credential


def _is_offline(controller_id: UUID) -> bool:
    return not selectors.is_online(Controller.objects.get(id=controller_id).lease_expires_at)


@pytest.mark.parametrize("kind", _ACTS, ids=lambda kind: kind.__name__)
async def test_a_call_waits_for_a_host_that_is_restarted(
    consumer_port: int, monkeypatch: pytest.MonkeyPatch, kind: type[Message]
) -> None:
    # A busy machine may need longer than the product waits to bring the host back.
    monkeypatch.setattr(returning, "RETURN_SECONDS", 60.0)
    session, credential = await _left(consumer_port)
    project = await in_database(lambda: session.project_id)
    call = asyncio.ensure_future(_ACTS[kind](project, session))
    async with scripted_controller(consumer_port, credential) as host:
        await host.hello(make_summary(session), capabilities=["files"])
        await host.receive(kind)
    call.cancel()
    with suppress(asyncio.CancelledError):
        await call


@pytest.mark.parametrize("kind", _ACTS, ids=lambda kind: kind.__name__)
async def test_a_host_that_stays_away_is_waited_for_no_longer(
    consumer_port: int, monkeypatch: pytest.MonkeyPatch, kind: type[Message]
) -> None:
    monkeypatch.setattr(returning, "RETURN_SECONDS", 0.05)
    session, _ = await _left(consumer_port)
    with pytest.raises(ControllerOffline):
        await _ACTS[kind](session.project_id, session)
    assert not await in_database(ControllerCommand.objects.exists)


async def _is_away(controller_id: UUID) -> bool:
    """True once a HELLO of the host was accepted and its lease is over."""
    host = await in_database(Controller.objects.get, id=controller_id)
    return host.epoch > 0 and not selectors.is_online(host.lease_expires_at)


@asynccontextmanager
async def _held_up(controller_id: UUID, **columns: object) -> AsyncIterator[None]:
    """In the block, nobody else can write about the host or its sessions."""
    loop, is_held, may_end = asyncio.get_running_loop(), asyncio.Event(), threading.Event()

    def hold() -> None:
        with transaction.atomic():
            Controller.objects.filter(id=controller_id).update(name="held", **columns)
            CommandSession.objects.filter(controller_id=controller_id).update(warning="held")
            loop.call_soon_threadsafe(is_held.set)
            may_end.wait(120)

    holding = asyncio.create_task(in_database(hold))
    await is_held.wait()
    try:
        yield
    finally:
        may_end.set()
        await holding


async def test_a_goodbye_does_not_wait_for_what_is_not_committed(consumer_port: int) -> None:
    controller, credential = await in_database(enrolled)
    session = await in_database(make_session, controller)
    async with AsyncExitStack() as held, scripted_controller(consumer_port, credential) as host:
        await host.hello(make_summary(session))
        # No lease runs out while the test waits.
        long = clock.now() + timedelta(hours=1)
        await held.enter_async_context(_held_up(controller.id, lease_expires_at=long))
        output = InteractiveOutput(
            session_id=str(session.id), stream="stdout", offset=0, seq=1, data=b"x"
        )
        await host.send(output, Draining(epoch=host.epoch))
    await await_until(lambda: _is_away(controller.id), 30, "the goodbye")


async def test_who_says_hello_and_goodbye_at_once_is_gone(consumer_port: int) -> None:
    controller, credential = await in_database(enrolled)
    async with AsyncExitStack() as held, scripted_controller(consumer_port, credential) as host:
        await held.enter_async_context(_held_up(controller.id))
        await host.send(make_hello(), Draining())
    await await_until(lambda: _is_away(controller.id), 30, "the goodbye")


async def test_no_heartbeat_takes_a_goodbye_back(consumer_port: int) -> None:
    controller, credential = await in_database(enrolled)
    async with scripted_controller(consumer_port, credential) as host:
        await host.hello()
        await host.receive(Ping)
        await host.send(Draining(epoch=host.epoch))
        await await_until(lambda: _is_away(controller.id), 30, "the goodbye")
        for _ in range(3):
            await host.receive(Ping)
        assert await _is_away(controller.id)
