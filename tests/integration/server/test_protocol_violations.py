"""Violations of the protocol: some are recorded for the host, others only end its connection."""

import asyncio
from functools import partial

import pytest

from controller_client.protocol.messages import (
    Ack,
    Error,
    Gap,
    InteractiveCmdDone,
    Ping,
    Pong,
    StreamFinal,
)
from projects.link.inbound.frame_queue import MAX_FRAMES
from projects.models import AuditEvent, CommandSession, Controller
from projects.storage.access import in_database
from tests.support.hosts.consumer_server import (
    enrolled,
    expect_close,
    held,
    output_of,
    send_all,
    stored,
)
from tests.support.hosts.scripted_controller import scripted_controller
from tests.support.rows import make_controller, make_session, make_summary
from tests.support.waiting import await_until

pytestmark = pytest.mark.django_db(transaction=True)


async def test_output_for_another_controllers_session_closes_the_connection(
    consumer_port: int,
) -> None:
    controller, credential = await in_database(enrolled)
    victim = await in_database(lambda: make_session(make_controller("victim")))
    async with scripted_controller(consumer_port, credential) as host:
        await host.hello()
        await host.send(output_of(victim, 0, b"forged"))
        await expect_close(host, 4400, "UNKNOWN_SESSION")
    assert await stored(victim) == b""
    await await_until(lambda: _are_on_record(controller, 1), 90, "the violation to be on record")


async def _only_a_lie_is_on_record(
    consumer_port: int, credential: str, controller: Controller
) -> None:
    """Check that nothing was recorded so far.

    A lie is told and waited for. Anything recorded before it would be in the log too.
    """
    async with scripted_controller(consumer_port, credential) as liar:
        await liar.send_raw("{")
        await expect_close(liar, 4400, "BAD_FRAME")
    await await_until(partial(_codes_on_record, controller), 90, "the violation to be on record")
    assert await _codes_on_record(controller) == ["BAD_FRAME"]


async def _codes_on_record(controller: Controller) -> list[str]:
    # Of this host alone: the row of a host of an earlier test may come late.
    events = AuditEvent.objects.filter(
        action="controller.protocol_violation", controller_id=controller.id
    )
    return [event.detail["code"] for event in await in_database(list, events.order_by("id"))]


async def _are_on_record(controller: Controller, violations: int) -> bool:
    return len(await _codes_on_record(controller)) == violations


async def test_a_violation_is_recorded_even_if_the_host_hangs_up(consumer_port: int) -> None:
    controller, credential = await in_database(enrolled)
    victim = await in_database(lambda: make_session(make_controller("victim")))
    for _ in range(10):
        async with scripted_controller(consumer_port, credential) as host:
            await host.hello()
            await host.send(output_of(victim, 0, b"forged"))
            await host.receive(Error)
            host.hang_up()
    await await_until(lambda: _are_on_record(controller, 10), 90, "all violations to be on record")


@pytest.mark.parametrize("is_end", [True, False])
async def test_an_end_or_a_gap_that_cannot_be_is_a_bad_frame(
    consumer_port: int, *, is_end: bool
) -> None:
    controller, credential = await in_database(enrolled)
    session = await in_database(make_session, controller)
    name, final = str(session.pk), StreamFinal(stream="stdout", next_offset=0, sha256="")
    message = (
        InteractiveCmdDone(
            session_id=name, end_reason="exited", exit_code=0, streams=[final, final]
        )
        if is_end
        else Gap(session_id=name, stream="stdout", from_offset=10, to_offset=5, reason="lost")
    )
    async with scripted_controller(consumer_port, credential) as host:
        await host.hello(make_summary(session))
        await host.send(message)
        await expect_close(host, 4400, "BAD_FRAME")
    await await_until(lambda: _are_on_record(controller, 1), 90, "the violation to be on record")


async def test_a_sender_that_ignores_its_window_is_closed(consumer_port: int) -> None:
    controller, credential = await in_database(enrolled)
    session = await in_database(make_session, controller)

    flood = [output_of(session, i * 60_000, b"x" * 60_000) for i in range(40)]
    async with scripted_controller(consumer_port, credential) as host:
        await host.hello(make_summary(session))
        async with held(session):
            sending = asyncio.create_task(send_all(host, flood))
            await expect_close(host, 4008, "WINDOW_VIOLATED")
            await sending
    await await_until(lambda: _are_on_record(controller, 1), 90, "the violation to be on record")


async def test_many_short_outputs_during_a_blocked_commit_are_no_violation(
    consumer_port: int,
) -> None:
    controller, credential = await in_database(enrolled)
    session = await in_database(make_session, controller)
    async with scripted_controller(consumer_port, credential) as host:
        await host.hello(make_summary(session))
        async with held(session):
            await host.send(*[output_of(session, i, b"x") for i in range(MAX_FRAMES + 500)], Ping())
            await host.receive(Pong)
        await await_until(
            partial(_has_stored, session, MAX_FRAMES + 500), 90, "all of it to be stored"
        )
    await _only_a_lie_is_on_record(consumer_port, credential, controller)


async def _has_stored(session: CommandSession, size: int) -> bool:
    return len(await stored(session)) == size


async def test_a_connection_that_says_nothing_is_closed_at_the_hello_deadline(
    consumer_port: int,
) -> None:
    controller, credential = await in_database(enrolled)
    async with scripted_controller(consumer_port, credential) as host:
        await expect_close(host, 4400, "HELLO_EXPECTED")
    await _only_a_lie_is_on_record(consumer_port, credential, controller)


async def test_a_newer_connection_of_the_same_daemon_fences_the_old_one(consumer_port: int) -> None:
    controller, credential = await in_database(enrolled)
    session = await in_database(make_session, controller)
    async with (
        scripted_controller(consumer_port, credential) as old,
        scripted_controller(consumer_port, credential) as new,
    ):
        await old.hello(make_summary(session))
        assert (await new.hello(make_summary(session))).epoch == 2
        # The heartbeat of the old connection may notice before its output does.
        await send_all(old, [output_of(session, 0, b"too late")])
        await expect_close(old, 4009, "FENCED")
        await new.send(output_of(session, 0, b"in time"))
        await new.receive(Ack)
    assert await stored(session) == b"in time"
    await _only_a_lie_is_on_record(consumer_port, credential, controller)
