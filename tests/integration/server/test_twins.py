"""Two daemons with one identity, as after a copy of a state directory.

The second one is noticed and reported, and no session is lost.
"""

import pytest
from websockets.exceptions import ConnectionClosed

from controller_client.protocol.messages import Ping, Pong
from projects.models import AuditEvent, CommandSession, Controller
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
            await await_until(_alarms, 30, "the alarm")
            assert await _state(session) == "RUNNING"
            async with scripted_controller(consumer_port, credential) as again:
                (directive,) = (await again.hello(make_summary(session))).sessions
                assert directive.action == "continue"
    assert "copy" in (await in_database(Controller.objects.get, id=controller.id)).alarm
    assert await _state(session) == "RUNNING"


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
