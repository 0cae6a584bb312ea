"""A host that said goodbye a moment ago is waited for: its daemon may be restarted just now."""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from uuid import UUID

import pytest

from controller_client.protocol.messages import (
    Draining,
    Message,
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
from projects.storage.access import in_database
from tests.support.hosts.consumer_server import enrolled
from tests.support.hosts.scripted_controller import scripted_controller
from tests.support.rows import make_session, make_summary
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
    consumer_port: int, kind: type[Message]
) -> None:
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
