"""Two daemons with one identity, as after a copy of a state directory.

The second one is noticed and reported. It loses no session, and it answers for none.
"""

from functools import partial

import msgspec
import pytest
from django.db import transaction
from websockets.exceptions import ConnectionClosed

from controller_client.protocol.messages import (
    CommandAck,
    Failure,
    InputAck,
    InteractiveCmdDone,
    InteractiveOutput,
    Message,
    Ping,
    Pong,
    Resize,
    SendInput,
    Started,
    TerminateCmd,
)
from controller_client.server_link.refusals import UNKNOWN_SESSION
from projects.models import AuditEvent, CommandSession, Controller, ControllerCommand
from projects.sessions import outbox
from projects.storage.access import in_database
from tests.support.hosts.consumer_server import enrolled
from tests.support.hosts.scripted_controller import ScriptedController, scripted_controller
from tests.support.rows import make_session, make_summary
from tests.support.waiting import await_until

pytestmark = pytest.mark.django_db(transaction=True)
FENCED = 4009


async def _alarms() -> int:
    return await in_database(AuditEvent.objects.filter(action="controller.second_instance").count)


async def _state(session: CommandSession) -> str:
    return (await in_database(CommandSession.objects.get, id=session.id)).state


async def _live_on(host: ScriptedController) -> int | None:
    """Answer PINGs as a living daemon does; return the code with which the connection is closed."""
    try:
        while True:
            ping = await host.receive(Ping)
            await host.send(Pong(reply_to=ping.id))
    except (AssertionError, ConnectionClosed):
        return await host.closed()


async def test_a_copy_that_takes_over_is_alarmed_and_loses_no_session(consumer_port: int) -> None:
    controller, credential = await in_database(enrolled)
    session = await in_database(make_session, controller)
    async with scripted_controller(consumer_port, credential) as first:
        await first.hello(make_summary(session))
        async with scripted_controller(consumer_port, credential) as copy:
            assert (await copy.hello()).sessions == []
            assert await _live_on(first) == FENCED
            await await_until(_alarms, 90, "the alarm")
            assert await _state(session) == "RUNNING"
            async with scripted_controller(consumer_port, credential) as again:
                (directive,) = (await again.hello(make_summary(session))).sessions
                assert directive.action == "continue"
    assert "copy" in (await in_database(Controller.objects.get, id=controller.id)).alarm
    assert await _state(session) == "RUNNING"


def _enqueue(session: CommandSession, *, input_seq: int = 1) -> None:
    """Put a command of each kind for a session into its outbox."""
    owner, name = session.controller_id, str(session.id)
    with transaction.atomic():
        for message in (
            SendInput(seq=0, session_id=name, input_seq=input_seq, data=b"a\n"),
            Resize(seq=0, session_id=name, rows=30, cols=90),
            TerminateCmd(seq=0, session_id=name),
        ):
            numbered = msgspec.structs.replace(message, seq=outbox.allocate_seq(owner))
            outbox.enqueue(controller_id=owner, session_id=session.id, message=numbered)


async def _commands_of(host: ScriptedController, count: int) -> list[tuple[str, int]]:
    """Session and number of the next commands that a host is sent."""
    sent = [await host.receive(SendInput | Resize | TerminateCmd) for _ in range(count)]
    return [(command.session_id, command.seq) for command in sent]


async def test_commands_of_a_session_wait_for_the_daemon_that_has_it(consumer_port: int) -> None:
    controller, credential = await in_database(enrolled)
    session = await in_database(make_session, controller)
    await in_database(_enqueue, session)
    async with scripted_controller(consumer_port, credential) as copy:
        await copy.hello()
        await in_database(partial(_enqueue, session, input_seq=2))
        other = await in_database(make_session, controller)
        await in_database(_enqueue, other)
        assert await _commands_of(copy, 3) == [(str(other.id), seq) for seq in (7, 8, 9)]
    async with scripted_controller(consumer_port, credential) as owner:
        await owner.hello(make_summary(session))
        assert await _commands_of(owner, 6) == [(str(session.id), seq) for seq in range(1, 7)]


@pytest.mark.parametrize(
    "frame",
    [
        InputAck(session_id="", command_seq=1, input_seq=1, failure=UNKNOWN_SESSION),
        CommandAck(session_id="", command_seq=2, failure=UNKNOWN_SESSION),
        CommandAck(session_id="", command_seq=3),
        InteractiveCmdDone(session_id="", end_reason="lost"),
        InteractiveOutput(session_id="", stream="stdout", offset=0, seq=1, data=b"another's"),
        Started(session_id="", command_seq=1, failure=Failure(code="START_FAILED", message="no")),
    ],
    ids=lambda frame: type(frame).__name__,
)
async def test_a_daemon_that_did_not_name_a_session_has_no_say_in_it(
    consumer_port: int, frame: Message
) -> None:
    controller, credential = await in_database(enrolled)
    session = await in_database(make_session, controller)
    await in_database(_enqueue, session)
    async with scripted_controller(consumer_port, credential) as copy:
        await copy.hello()
        await copy.send(msgspec.structs.replace(frame, session_id=str(session.id)))
        await copy.closed()
        assert [error.code for error in copy.errors] == ["SESSION_NOT_NAMED"]
    now = await in_database(CommandSession.objects.get, id=session.id)
    assert (now.state, now.stdout_next_offset) == ("RUNNING", 0)
    open_ones = ControllerCommand.objects.filter(settled_at__isnull=True)
    assert await in_database(open_ones.count) == 3


async def test_a_daemon_that_comes_back_after_a_cut_is_no_twin(consumer_port: int) -> None:
    controller, credential = await in_database(enrolled)
    session = await in_database(make_session, controller)
    async with scripted_controller(consumer_port, credential) as first:
        await first.hello(make_summary(session))
        async with scripted_controller(consumer_port, credential) as second:
            await second.hello(make_summary(session))
            # Nobody answers on the old connection any more, so the server raises no alarm.
            assert await first.closed() == FENCED
    assert await _alarms() == 0
    assert (await in_database(Controller.objects.get, id=controller.id)).alarmed_at is None
