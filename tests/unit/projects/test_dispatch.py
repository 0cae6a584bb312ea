"""The outbox is dense and sealed; a doorbell may be lost, never waited for in vain."""

import asyncio
from datetime import timedelta
from typing import Any
from uuid import uuid4

import pytest
from django.utils import timezone

from controller_client.protocol.codec import decode_from_server
from controller_client.protocol.messages import SendInput
from projects import dispatch
from projects.encryption import open_sealed
from projects.exchange import exchange
from projects.models import Controller, ControllerCommand
from tests.support.rows import make_controller, make_session
from tests.support.waiting import await_until


@pytest.mark.django_db
def test_commands_are_numbered_without_holes_and_sealed() -> None:
    controller = make_controller()
    session = make_session(controller)
    for input_seq in (1, 2):
        seq, name, lease = dispatch.allocate_seq(controller.id)
        assert (seq, name, lease) == (input_seq, "host", None)
        message = SendInput(seq=seq, session_id=str(session.id), input_seq=input_seq, data=b"hunter2\n")
        dispatch.enqueue(controller_id=controller.id, session_id=session.id, message=message)
    rows = list(ControllerCommand.objects.order_by("seq"))
    assert [(row.seq, row.type, row.input_seq, row.sent_epoch, row.failure_code) for row in rows] == [
        (1, "SEND_INPUT", 1, None, ""),
        (2, "SEND_INPUT", 2, None, ""),
    ]
    assert b"hunter2" not in bytes(rows[0].body or b"")
    assert decode_from_server.decode(open_sealed(rows[1].body or b"")) == message


@pytest.mark.django_db
def test_times_of_plain_statements_are_aware() -> None:
    soon = timezone.now() + timedelta(seconds=30)
    controller = make_controller(lease_expires_at=soon)
    assert dispatch.allocate_seq(controller.id)[2] == soon
    with pytest.raises(Controller.DoesNotExist):
        dispatch.allocate_seq(uuid4())


async def test_a_ring_wakes_whoever_waits() -> None:
    session_id = uuid4()
    async with dispatch.session_doorbell(session_id) as bell, dispatch.session_doorbell(session_id) as other:
        waits = asyncio.gather(bell.wait(10), other.wait(10))
        await dispatch.ring_session(session_id)
        assert await waits == [True, True]


async def test_rings_between_two_waits_are_kept_as_one() -> None:
    session_id = uuid4()
    async with dispatch.session_doorbell(session_id) as bell:
        for _ in range(300):
            await dispatch.ring_session(session_id)
            await asyncio.sleep(0)
        assert await bell.wait(1)
        # Whoever starts to hear other processes is rung once more, whenever that is.
        assert not (await bell.wait(0.01) and await bell.wait(0.01))


async def test_a_wait_never_lasts_longer_than_the_safety_net(settings: Any) -> None:
    settings.SAFETY_NET_SECONDS = 0.02
    async with dispatch.session_doorbell(uuid4()) as bell:
        # Whoever starts to hear other processes looks once, as it may have missed something.
        assert not (await bell.wait(60) and await bell.wait(60))


async def test_leaving_forgets_the_group_even_when_cancelled() -> None:
    session_id = uuid4()

    async def wait() -> None:
        async with dispatch.session_doorbell(session_id) as bell:
            while True:
                await bell.wait(60)

    waiting = asyncio.create_task(wait())
    await await_until(lambda: dispatch.session_group(session_id) in exchange().listeners(), 30, "the waiter to listen")
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    assert exchange().listeners() == {}
