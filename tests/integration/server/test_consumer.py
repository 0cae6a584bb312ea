"""The controllers' socket of a real Daphne process.

The daemon at its other end is honest, unlucky or lying.
"""

from hashlib import sha256
from uuid import uuid4

import pytest
from django.db import transaction
from django.utils import timezone
from websockets.asyncio.client import connect
from websockets.exceptions import InvalidStatus

from controller_client.protocol.messages import (
    Ack,
    CommandAck,
    DoneAck,
    Failure,
    FileChunk,
    Gap,
    InputAck,
    InteractiveCmdDone,
    Ping,
    Pong,
    SendInput,
    Started,
    StartInteractiveCmd,
    StreamFinal,
    TerminalReport,
    TerminateCmd,
)
from controller_client.protocol.session_state import SessionState
from projects.models import (
    AuditEvent,
    CommandSession,
    Controller,
    ControllerCommand,
    ControllerCredential,
)
from projects.output import log as output_log
from projects.sessions import outbox
from projects.storage.access import in_database
from tests.support.hosts.consumer_server import enrolled, expect_close, output_of, stored
from tests.support.hosts.scripted_controller import scripted_controller
from tests.support.rows import make_controller, make_hello, make_session, make_summary
from tests.support.waiting import await_until

pytestmark = pytest.mark.django_db(transaction=True)


def _enqueue_start(session: CommandSession) -> int:
    with transaction.atomic():
        seq = outbox.allocate_seq(session.controller_id)
        message = StartInteractiveCmd(seq=seq, session_id=str(session.id), command="cat")
        outbox.enqueue(controller_id=session.controller_id, session_id=session.id, message=message)
    return seq


def _enqueue_input(session: CommandSession, input_seq: int) -> int:
    with transaction.atomic():
        seq = outbox.allocate_seq(session.controller_id)
        message = SendInput(
            seq=seq, session_id=str(session.id), input_seq=input_seq, data=b"hello\n"
        )
        outbox.enqueue(controller_id=session.controller_id, session_id=session.id, message=message)
    return seq


async def _reloaded(session: CommandSession) -> CommandSession:
    return await in_database(CommandSession.objects.get, id=session.id)


# ---- honest --------------------------------------------------------------------------------------


async def test_a_session_lives_from_start_to_done(consumer_port: int) -> None:
    controller, credential = await in_database(enrolled)
    async with scripted_controller(consumer_port, credential) as host:
        welcome = await host.hello()
        assert (welcome.epoch, welcome.sessions) == (1, [])
        session = await in_database(make_session, controller, SessionState.PENDING)
        await in_database(_enqueue_start, session)
        start = await host.receive(StartInteractiveCmd)
        assert (start.session_id, start.command, start.epoch) == (str(session.id), "cat", 1)
        assert (await _reloaded(session)).state == SessionState.SENT

        verdict = TerminalReport(
            state="awaiting_input",
            offset=2,
            input_seq=0,
            kind="line",
            evidence="kernel",
            prompt="> ",
        )
        await host.send(
            Started(session_id=start.session_id, command_seq=start.seq, pid=42),
            output_of(session, 0, b"> ", terminal=verdict),
        )
        ack = await host.receive(Ack)
        assert [(o.session_id, o.stream, o.offset) for o in ack.offsets] == [
            (start.session_id, "stdout", 2)
        ]
        running = await _reloaded(session)
        assert (running.state, running.pid, running.terminal_state, running.terminal_prompt) == (
            "RUNNING",
            42,
            "awaiting_input",
            "> ",
        )

        await in_database(_enqueue_input, session, 1)
        typed = await host.receive(SendInput)
        assert (typed.data, typed.input_seq) == (b"hello\n", 1)
        await host.send(
            InputAck(
                session_id=start.session_id, command_seq=typed.seq, input_seq=1, accepted_bytes=6
            ),
            output_of(session, 2, b"hello\r\n"),
        )
        await host.receive(Ack)
        digest = sha256(b"> hello\r\n").hexdigest()
        done = InteractiveCmdDone(
            session_id=start.session_id,
            end_reason="exited",
            exit_code=0,
            streams=[StreamFinal(stream="stdout", next_offset=9, sha256=digest)],
        )
        await host.send(done)
        assert (await host.receive(DoneAck)).session_ids == [start.session_id]
    ended = await _reloaded(session)
    assert (ended.state, ended.exit_code, ended.ended_by, ended.stdout_sha256_ok) == (
        "EXITED",
        0,
        "program",
        True,
    )
    assert await stored(session) == b"> hello\r\n"
    bodies = await in_database(
        lambda: list(ControllerCommand.objects.values_list("body", "settled_at"))
    )
    assert all(body is None and settled for body, settled in bodies)


async def test_a_reconnect_resends_unsettled_commands_from_committed_offsets(
    consumer_port: int,
) -> None:
    controller, credential = await in_database(enrolled)
    session = await in_database(make_session, controller)
    await in_database(_enqueue_input, session, 1)
    async with scripted_controller(consumer_port, credential) as host:
        await host.hello(make_summary(session))
        first = await host.receive(SendInput)
        await host.send(output_of(session, 0, b"abc"))
        await host.receive(Ack)
    async with scripted_controller(consumer_port, credential) as host:
        welcome = await host.hello(make_summary(session, next_offset=5))
        (directive,) = welcome.sessions
        assert (directive.action, [(o.stream, o.offset) for o in directive.expected]) == (
            "continue",
            [("stdout", 3)],
        )
        again = await host.receive(SendInput)
        assert (again.seq, again.input_seq, again.data) == (first.seq, first.input_seq, first.data)
        # Output that is sent again may be cut into other frames. Known bytes are dropped.
        await host.send(output_of(session, 1, b"bcde"))
        assert (await host.receive(Ack)).offsets[0].offset == 5
    assert await stored(session) == b"abcde"


async def test_lost_output_is_stored_as_a_gap_and_output_continues_after_it(
    consumer_port: int,
) -> None:
    controller, credential = await in_database(enrolled)
    session = await in_database(make_session, controller)
    async with scripted_controller(consumer_port, credential) as host:
        await host.hello(make_summary(session))
        gap = Gap(
            session_id=str(session.id),
            stream="stdout",
            from_offset=2,
            to_offset=10,
            reason="ring_overflow",
        )
        await host.send(output_of(session, 0, b"ab"), gap, output_of(session, 10, b"kl"))
        await await_until(lambda: _has_next_offset(session, 12), 90, "all of it to be committed")
    found = await in_database(output_log.read, session.id, "stdout", 0, 100)
    assert found.data == b"abkl"
    assert [(g.from_offset, g.to_offset, g.reason) for g in found.gaps] == [
        (2, 10, "ring_overflow")
    ]


async def _has_next_offset(session: CommandSession, offset: int) -> bool:
    return (await _reloaded(session)).stdout_next_offset == offset


async def test_a_failed_start_ends_the_session_and_the_host_may_forget_it(
    consumer_port: int,
) -> None:
    controller, credential = await in_database(enrolled)
    session = await in_database(make_session, controller, SessionState.PENDING)
    await in_database(_enqueue_start, session)
    async with scripted_controller(consumer_port, credential) as host:
        await host.hello()
        start = await host.receive(StartInteractiveCmd)
        failure = Failure(code="PROGRAM_NOT_FOUND", message="no program nope", errno_name="ENOENT")
        await host.send(
            Started(session_id=start.session_id, command_seq=start.seq, failure=failure)
        )
        assert (await host.receive(DoneAck)).session_ids == [start.session_id]
    failed = await _reloaded(session)
    assert (failed.state, failed.failure_code, failed.failure_message) == (
        "START_FAILED",
        "PROGRAM_NOT_FOUND",
        "no program nope (ENOENT)",
    )


async def test_a_program_that_runs_after_its_start_was_given_up_is_terminated(
    consumer_port: int,
) -> None:
    controller, credential = await in_database(enrolled)
    session = await in_database(make_session, controller, SessionState.EXPIRED)
    async with scripted_controller(consumer_port, credential) as host:
        await host.hello()
        await host.send(Started(session_id=str(session.id), command_seq=1, pid=42))
        order = await host.receive(TerminateCmd)
        assert order.session_id == str(session.id)
        await host.send(CommandAck(session_id=order.session_id, command_seq=order.seq))
        await host.send(
            InteractiveCmdDone(
                session_id=order.session_id, end_reason="terminated", signal="SIGTERM"
            )
        )
        await host.receive(DoneAck)
    assert (await _reloaded(session)).state == SessionState.EXPIRED


async def test_a_ping_is_answered_and_a_connected_hosts_lease_is_renewed(
    consumer_port: int,
) -> None:
    controller, credential = await in_database(enrolled)
    async with scripted_controller(consumer_port, credential) as host:
        await host.hello()
        first = (await in_database(Controller.objects.get, id=controller.id)).lease_expires_at
        ping = Ping()
        await host.send(ping)
        assert (await host.receive(Pong)).reply_to == ping.id
        await host.send(Pong(reply_to=(await host.receive(Ping)).id))

        async def is_renewed() -> bool:
            lease = (await in_database(Controller.objects.get, id=controller.id)).lease_expires_at
            return lease is not None and first is not None and lease > first

        await await_until(is_renewed, 90, "the lease to be renewed")


async def test_a_host_that_reports_another_hosts_session_is_told_to_terminate_it(
    consumer_port: int,
) -> None:
    _, credential = await in_database(enrolled)
    stray = await in_database(lambda: make_session(make_controller("other")))
    async with scripted_controller(consumer_port, credential) as host:
        welcome = await host.hello(make_summary(stray))
        assert [d.action for d in welcome.sessions] == ["terminate"]
        await host.send(output_of(stray, 0, b"x" * 60_000))
        assert (await host.receive(Ack)).offsets[0].offset == 60_000
        await host.send(
            InteractiveCmdDone(session_id=str(stray.id), end_reason="terminated", signal="SIGTERM")
        )
        assert (await host.receive(DoneAck)).session_ids == [str(stray.id)]


# ---- refused -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"Authorization": "Bearer ctl_0000000000000000_" + "A" * 43},
        {"Origin": "http://127.0.0.1"},
    ],
)
async def test_a_socket_needs_a_valid_credential_and_no_origin_to_open(
    consumer_port: int,
    headers: dict[str, str],
) -> None:
    _, credential = await in_database(enrolled)
    shown = {"Authorization": f"Bearer {credential}", **headers} if "Origin" in headers else headers
    with pytest.raises(InvalidStatus) as refused:
        async with connect(
            f"ws://127.0.0.1:{consumer_port}/ws/controller/", additional_headers=shown
        ):
            pass
    assert refused.value.response.status_code == 403


@pytest.mark.parametrize(
    "frame",
    [
        "",
        "{}",
        '{"type": "NOPE"}',
        "[" * 5000,
        '{"type": "HELLO", "versions": "x"}',
        b"\xff\xfe",
        '{"type": "WELCOME"}',
    ],
)
async def test_a_frame_that_is_no_message_closes_the_connection_after_an_error(
    consumer_port: int, frame: str | bytes
) -> None:
    _, credential = await in_database(enrolled)
    async with scripted_controller(consumer_port, credential) as host:
        await host.hello()
        await host.send_raw(frame)
        await expect_close(host, 4400, "BAD_FRAME")


async def test_a_frame_before_hello_and_a_second_hello_are_refused(consumer_port: int) -> None:
    _, credential = await in_database(enrolled)
    async with scripted_controller(consumer_port, credential) as host:
        await host.send(Ping())
        await expect_close(host, 4400, "HELLO_EXPECTED")
    async with scripted_controller(consumer_port, credential) as host:
        await host.hello()
        await host.send(make_hello())
        await expect_close(host, 4400, "HELLO_EXPECTED")


async def test_a_daemon_of_another_version_is_told_so(consumer_port: int) -> None:
    _, credential = await in_database(enrolled)
    async with scripted_controller(consumer_port, credential) as host:
        await host.send(make_hello(versions=[99]))
        await expect_close(host, 4426, "VERSION_UNSUPPORTED")


async def test_a_second_live_instance_is_refused_and_the_first_is_unaffected(
    consumer_port: int,
) -> None:
    controller, credential = await in_database(enrolled)
    session = await in_database(make_session, controller)
    async with scripted_controller(consumer_port, credential) as first:
        await first.hello(make_summary(session))
        async with scripted_controller(consumer_port, credential) as second:
            await second.send(make_hello(instance_id="another"))
            await expect_close(second, 4010, "SECOND_INSTANCE")
        await first.send(output_of(session, 0, b"still here"))
        await first.receive(Ack)
    alarms = AuditEvent.objects.filter(
        action="controller.second_instance", controller_id=controller.id
    )
    await await_until(lambda: in_database(alarms.count), 60, "the second instance to be on record")
    assert await in_database(alarms.count) == 1


async def test_output_that_skips_bytes_is_refused_and_what_came_before_is_kept(
    consumer_port: int,
) -> None:
    controller, credential = await in_database(enrolled)
    session = await in_database(make_session, controller)
    async with scripted_controller(consumer_port, credential) as host:
        await host.hello(make_summary(session))
        await host.send(output_of(session, 0, b"ab"), output_of(session, 5, b"fg"))
        await expect_close(host, 4400, "OFFSET_AHEAD")
    assert await stored(session) == b"ab"


async def test_an_answer_that_nobody_asked_for_closes_the_connection(consumer_port: int) -> None:
    _, credential = await in_database(enrolled)
    async with scripted_controller(consumer_port, credential) as host:
        await host.hello()
        await host.send(FileChunk(reply_to=str(uuid4()), data=b"x"))
        await expect_close(host, 4400, "UNASKED_ANSWER")


async def test_a_revoked_credential_loses_its_open_connection(consumer_port: int) -> None:
    _, credential = await in_database(enrolled)
    async with scripted_controller(consumer_port, credential) as host:
        await host.hello()
        await in_database(lambda: ControllerCredential.objects.update(revoked_at=timezone.now()))
        await expect_close(host, 4401, "REVOKED")
    with pytest.raises(InvalidStatus):
        async with scripted_controller(consumer_port, credential):
            pass
