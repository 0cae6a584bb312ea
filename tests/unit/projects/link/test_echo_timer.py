"""The echo time of a host is measured when somebody rings, and only by answers that have echoed."""

import asyncio
from datetime import timedelta
from functools import partial
from typing import Any

import pytest

from controller_client.protocol.messages import Message, Ping, Pong
from projects.link import echo_timer
from projects.link.echo_timer import EchoTimer
from projects.models import Controller
from projects.storage.access import in_database
from projects.wakeups import doorbells
from tests.support.rows import make_controller
from tests.support.waiting import await_until

pytestmark = pytest.mark.django_db(transaction=True)


async def _measured(controller: Controller) -> float | None:
    await in_database(controller.refresh_from_db)
    return controller.echo_ms


@pytest.mark.parametrize("echoed", [True, False])
async def test_an_echo_is_stored_and_an_older_daemon_is_not_known(
    monkeypatch: pytest.MonkeyPatch, echoed: bool
) -> None:
    monkeypatch.setattr(echo_timer, "ANSWER_SECONDS", 0.2)
    controller = await in_database(make_controller)
    sent: list[Message] = []

    async def send(message: Message) -> None:
        sent.append(message)
        assert isinstance(message, Ping)
        timer.heard(Pong(reply_to="another", echoed=True))
        timer.heard(Pong(reply_to=message.id, echoed=echoed))

    timer = EchoTimer(controller.pk, send)
    task = asyncio.create_task(timer.measure())
    for count in (1, 2):
        await await_until(partial(_rung, controller, sent, count), 20, "a ping")
    await await_until(lambda: _is(controller, echoed=echoed), 20, "the time")
    task.cancel()
    if echoed:
        assert controller.echoed_at is not None
        assert controller.echoed_at - controller.created_at < timedelta(hours=1)


async def _rung(controller: Controller, sent: list[Message], count: int) -> bool:
    await doorbells.ring_echo(controller.pk)
    return len(sent) >= count


async def _is(controller: Controller, *, echoed: bool) -> bool:
    return (await _measured(controller) is not None) == echoed


def test_what_a_host_says_of_its_policy_is_stored_as_text() -> None:
    controller = make_controller()
    echo_timer._store(controller.pk, 0.5, Pong(reply_to="1", policy="\0" + "p" * 99, echoed=True))
    controller.refresh_from_db()
    assert controller.policy_digest == "\N{REPLACEMENT CHARACTER}" + "p" * 63


async def test_a_host_is_measured_by_the_period_and_not_by_the_safety_net(
    monkeypatch: pytest.MonkeyPatch, settings: Any
) -> None:
    monkeypatch.setattr(echo_timer, "FIRST_WITHIN_SECONDS", 0.0)
    settings.SAFETY_NET_SECONDS = 0.01
    controller = await in_database(make_controller)
    first, again = asyncio.Event(), asyncio.Event()

    async def send(message: Message) -> None:
        (again if first.is_set() else first).set()
        timer.heard(Pong(reply_to=message.id, echoed=True))

    timer = EchoTimer(controller.pk, send)
    task = asyncio.create_task(timer.measure())
    await await_until(lambda: _is(controller, echoed=True), 20, "the first time")
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.3):
            await again.wait()
    task.cancel()
