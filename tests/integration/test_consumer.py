"""The controllers' socket of a real Daphne process, from the side of a daemon that may be honest, unlucky or lying."""

import asyncio
import os
import socket
import subprocess
import sys
import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from hashlib import sha256
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from django.conf import settings
from django.db import connection, transaction
from django.utils import timezone
from websockets.asyncio.client import connect
from websockets.exceptions import ConnectionClosed, InvalidStatus

from controller_client.protocol.messages import (
    Ack,
    CommandAck,
    DoneAck,
    Error,
    Failure,
    FileChunk,
    Gap,
    InputAck,
    InteractiveCmdDone,
    InteractiveOutput,
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
from projects import dispatch, output_log
from projects.authentication import controller_credential_create
from projects.database import at_length, in_database
from projects.models import AuditEvent, CommandSession, Controller, ControllerCommand, ControllerCredential
from tests.support.ports import free_port
from tests.support.rows import make_controller, make_hello, make_session, make_summary
from tests.support.scripted_controller import ScriptedController, scripted_controller
from tests.support.waiting import await_until, wait_until

pytestmark = pytest.mark.django_db(transaction=True)

PROJECT_ROOT = Path(__file__).resolve().parents[2]
DAPHNE = str(Path(sys.executable).parent / "daphne")


@pytest.fixture(scope="module")
def server(django_db_setup: None) -> Iterator[int]:
    """Port of a Daphne process on the test database. Its doorbells ring in another process than ours: the safety net is short."""
    port = free_port()
    variables = {
        "DJANGO_SETTINGS_MODULE": "config.settings.base",
        "HOLDLINE_DATA_DIR": str(settings.DATA_DIR),
        "DATABASE_URL": _test_database_url(),
        "HOLDLINE_SAFETY_NET_SECONDS": "0.05",
        "HOLDLINE_HEARTBEAT_SECONDS": "0.3",
        "HOLDLINE_HELLO_DEADLINE_SECONDS": "1",
    }
    command = [DAPHNE, "-b", "127.0.0.1", "-p", str(port), "--websocket_timeout", "-1", "-v", "0", "config.asgi:application"]
    log_path = Path(settings.DATA_DIR) / "daphne.log"
    with log_path.open("wb") as log:
        process = subprocess.Popen(command, cwd=PROJECT_ROOT, env={**os.environ, **variables}, stdout=log, stderr=log)
    try:
        wait_until(lambda: _accepts(port) or process.poll() is not None, 30, "Daphne to listen")
        yield port
    finally:
        process.kill()
        process.wait()
        sys.stderr.write(log_path.read_text())


def _test_database_url() -> str:
    found = connection.settings_dict
    if connection.vendor == "sqlite":
        return f"sqlite://{found['NAME']}"
    return f"postgres://{found['USER']}:{found['PASSWORD']}@{found['HOST']}:{found['PORT']}/{found['NAME']}"


def _accepts(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def _enrolled(name: str = "host") -> tuple[Controller, str]:
    controller = make_controller(name)
    return controller, controller_credential_create(controller=controller)[1]


def _enqueue_start(session: CommandSession) -> int:
    with transaction.atomic():
        seq, _, _ = dispatch.allocate_seq(session.controller_id)
        message = StartInteractiveCmd(seq=seq, session_id=str(session.id), command="cat")
        dispatch.enqueue(controller_id=session.controller_id, session_id=session.id, message=message)
    return seq


def _enqueue_input(session: CommandSession, input_seq: int) -> int:
    with transaction.atomic():
        seq, _, _ = dispatch.allocate_seq(session.controller_id)
        message = SendInput(seq=seq, session_id=str(session.id), input_seq=input_seq, data=b"hello\n")
        dispatch.enqueue(controller_id=session.controller_id, session_id=session.id, message=message)
    return seq


def _output(session: CommandSession, offset: int, data: bytes, **fields: Any) -> InteractiveOutput:
    return InteractiveOutput(session_id=str(session.id), stream="stdout", offset=offset, seq=1, data=data, **fields)


async def _stored(session: CommandSession) -> bytes:
    return (await in_database(output_log.read, session.id, "stdout", 0, 1 << 20)).data


async def _reloaded(session: CommandSession) -> CommandSession:
    return await in_database(CommandSession.objects.get, id=session.id)


# ---- honest ------------------------------------------------------------------------------------------------------------


async def test_a_session_lives_from_start_to_done(server: int) -> None:
    controller, credential = await in_database(_enrolled)
    async with scripted_controller(server, credential) as host:
        welcome = await host.hello()
        assert (welcome.epoch, welcome.sessions) == (1, [])
        session = await in_database(make_session, controller, SessionState.PENDING)
        await in_database(_enqueue_start, session)
        start = await host.receive(StartInteractiveCmd)
        assert (start.session_id, start.command, start.epoch) == (str(session.id), "cat", 1)
        assert (await _reloaded(session)).state == SessionState.SENT

        verdict = TerminalReport(state="awaiting_input", offset=2, input_seq=0, kind="line", evidence="kernel", prompt="> ")
        await host.send(Started(session_id=start.session_id, command_seq=start.seq, pid=42), _output(session, 0, b"> ", terminal=verdict))
        ack = await host.receive(Ack)
        assert [(o.session_id, o.stream, o.offset) for o in ack.offsets] == [(start.session_id, "stdout", 2)]
        running = await _reloaded(session)
        assert (running.state, running.pid, running.terminal_state, running.terminal_prompt) == ("RUNNING", 42, "awaiting_input", "> ")

        await in_database(_enqueue_input, session, 1)
        typed = await host.receive(SendInput)
        assert (typed.data, typed.input_seq) == (b"hello\n", 1)
        await host.send(
            InputAck(session_id=start.session_id, command_seq=typed.seq, input_seq=1, accepted_bytes=6), _output(session, 2, b"hello\r\n")
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
    assert (ended.state, ended.exit_code, ended.ended_by, ended.stdout_sha256_ok) == ("EXITED", 0, "program", True)
    assert await _stored(session) == b"> hello\r\n"
    bodies = await in_database(lambda: list(ControllerCommand.objects.values_list("body", "settled_at")))
    assert all(body is None and settled for body, settled in bodies)


async def test_what_was_not_settled_is_sent_again_on_the_next_connection_and_expected_offsets_are_what_was_committed(server: int) -> None:
    controller, credential = await in_database(_enrolled)
    session = await in_database(make_session, controller)
    await in_database(_enqueue_input, session, 1)
    async with scripted_controller(server, credential) as host:
        await host.hello(make_summary(session))
        first = await host.receive(SendInput)
        await host.send(_output(session, 0, b"abc"))
        await host.receive(Ack)
    async with scripted_controller(server, credential) as host:
        welcome = await host.hello(make_summary(session, next_offset=5))
        (directive,) = welcome.sessions
        assert (directive.action, [(o.stream, o.offset) for o in directive.expected]) == ("continue", [("stdout", 3)])
        again = await host.receive(SendInput)
        assert (again.seq, again.input_seq, again.data) == (first.seq, first.input_seq, first.data)
        # A resent stretch may be cut differently: what is known is dropped, the rest kept.
        await host.send(_output(session, 1, b"bcde"))
        assert (await host.receive(Ack)).offsets[0].offset == 5
    assert await _stored(session) == b"abcde"


async def test_a_lost_stretch_is_stored_as_a_gap_and_output_goes_on_behind_it(server: int) -> None:
    controller, credential = await in_database(_enrolled)
    session = await in_database(make_session, controller)
    async with scripted_controller(server, credential) as host:
        await host.hello(make_summary(session))
        gap = Gap(session_id=str(session.id), stream="stdout", from_offset=2, to_offset=10, reason="ring_overflow")
        await host.send(_output(session, 0, b"ab"), gap, _output(session, 10, b"kl"))
        await await_until(lambda: _has_next_offset(session, 12), 30, "all of it to be committed")
    found = await in_database(output_log.read, session.id, "stdout", 0, 100)
    assert found.data == b"abkl"
    assert [(g.from_offset, g.to_offset, g.reason) for g in found.gaps] == [(2, 10, "ring_overflow")]


async def _has_next_offset(session: CommandSession, offset: int) -> bool:
    return (await _reloaded(session)).stdout_next_offset == offset


async def test_a_failed_start_ends_the_session_and_the_host_may_forget_it(server: int) -> None:
    controller, credential = await in_database(_enrolled)
    session = await in_database(make_session, controller, SessionState.PENDING)
    await in_database(_enqueue_start, session)
    async with scripted_controller(server, credential) as host:
        await host.hello()
        start = await host.receive(StartInteractiveCmd)
        failure = Failure(code="PROGRAM_NOT_FOUND", message="no program nope", errno_name="ENOENT")
        await host.send(Started(session_id=start.session_id, command_seq=start.seq, failure=failure))
        assert (await host.receive(DoneAck)).session_ids == [start.session_id]
    failed = await _reloaded(session)
    assert (failed.state, failed.failure_code, failed.failure_message) == ("START_FAILED", "PROGRAM_NOT_FOUND", "no program nope (ENOENT)")


async def test_a_program_that_runs_after_its_start_was_given_up_is_terminated(server: int) -> None:
    controller, credential = await in_database(_enrolled)
    session = await in_database(make_session, controller, SessionState.EXPIRED)
    async with scripted_controller(server, credential) as host:
        await host.hello()
        await host.send(Started(session_id=str(session.id), command_seq=1, pid=42))
        order = await host.receive(TerminateCmd)
        assert order.session_id == str(session.id)
        await host.send(CommandAck(session_id=order.session_id, command_seq=order.seq))
        await host.send(InteractiveCmdDone(session_id=order.session_id, end_reason="terminated", signal="SIGTERM"))
        await host.receive(DoneAck)
    assert (await _reloaded(session)).state == SessionState.EXPIRED


async def test_a_ping_is_answered_and_the_lease_is_renewed_while_the_host_is_there(server: int) -> None:
    controller, credential = await in_database(_enrolled)
    async with scripted_controller(server, credential) as host:
        await host.hello()
        first = (await in_database(Controller.objects.get, id=controller.id)).lease_expires_at
        ping = Ping()
        await host.send(ping)
        assert (await host.receive(Pong)).reply_to == ping.id
        await host.send(Pong(reply_to=(await host.receive(Ping)).id))

        async def is_renewed() -> bool:
            lease = (await in_database(Controller.objects.get, id=controller.id)).lease_expires_at
            return lease is not None and first is not None and lease > first

        await await_until(is_renewed, 30, "the lease to be renewed")


async def test_output_of_a_session_the_server_never_had_is_acknowledged_until_the_host_is_done_with_it(server: int) -> None:
    _, credential = await in_database(_enrolled)
    stray = CommandSession(id=uuid4())
    async with scripted_controller(server, credential) as host:
        welcome = await host.hello(make_summary(stray))
        assert [d.action for d in welcome.sessions] == ["terminate"]
        await host.send(_output(stray, 0, b"x" * 60_000))
        assert (await host.receive(Ack)).offsets[0].offset == 60_000
        await host.send(InteractiveCmdDone(session_id=str(stray.id), end_reason="terminated", signal="SIGTERM"))
        assert (await host.receive(DoneAck)).session_ids == [str(stray.id)]


# ---- refused -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("headers", [{}, {"Authorization": "Bearer ctl_0000000000000000_" + "A" * 43}, {"Origin": "http://127.0.0.1"}])
async def test_a_socket_without_a_valid_credential_or_with_an_origin_is_refused_before_it_opens(
    server: int, headers: dict[str, str]
) -> None:
    _, credential = await in_database(_enrolled)
    shown = {"Authorization": f"Bearer {credential}", **headers} if "Origin" in headers else headers
    with pytest.raises(InvalidStatus) as refused:
        async with connect(f"ws://127.0.0.1:{server}/ws/controller/", additional_headers=shown):
            pass
    assert refused.value.response.status_code == 403


async def _expect_close(host: ScriptedController, close_code: int, code: str) -> None:
    assert await host.closed() == close_code
    assert [error.code for error in host.errors] == [code]


async def test_a_connection_that_says_nothing_is_closed_at_the_hello_deadline(server: int) -> None:
    _, credential = await in_database(_enrolled)
    async with scripted_controller(server, credential) as host:
        await _expect_close(host, 4400, "HELLO_EXPECTED")


@pytest.mark.parametrize(
    "frame", ["", "{}", '{"type": "NOPE"}', "[" * 5000, '{"type": "HELLO", "versions": "x"}', b"\xff\xfe", '{"type": "WELCOME"}']
)
async def test_a_frame_that_is_no_message_closes_the_connection_after_an_error(server: int, frame: str | bytes) -> None:
    _, credential = await in_database(_enrolled)
    async with scripted_controller(server, credential) as host:
        await host.hello()
        await host.send_raw(frame)
        await _expect_close(host, 4400, "BAD_FRAME")


async def test_a_frame_before_hello_and_a_second_hello_are_refused(server: int) -> None:
    _, credential = await in_database(_enrolled)
    async with scripted_controller(server, credential) as host:
        await host.send(Ping())
        await _expect_close(host, 4400, "HELLO_EXPECTED")
    async with scripted_controller(server, credential) as host:
        await host.hello()
        await host.send(make_hello())
        await _expect_close(host, 4400, "HELLO_EXPECTED")


async def test_a_daemon_of_another_version_is_told_so(server: int) -> None:
    _, credential = await in_database(_enrolled)
    async with scripted_controller(server, credential) as host:
        await host.send(make_hello(versions=[99]))
        await _expect_close(host, 4426, "VERSION_UNSUPPORTED")


async def test_a_second_live_instance_is_refused_and_the_first_is_unaffected(server: int) -> None:
    controller, credential = await in_database(_enrolled)
    session = await in_database(make_session, controller)
    async with scripted_controller(server, credential) as first:
        await first.hello(make_summary(session))
        async with scripted_controller(server, credential) as second:
            await second.send(make_hello(instance_id="another"))
            await _expect_close(second, 4010, "SECOND_INSTANCE")
        await first.send(_output(session, 0, b"still here"))
        await first.receive(Ack)
    assert await in_database(AuditEvent.objects.filter(action="controller.second_instance").count) == 1


async def test_a_newer_connection_of_the_same_daemon_fences_the_old_one(server: int) -> None:
    controller, credential = await in_database(_enrolled)
    session = await in_database(make_session, controller)
    async with scripted_controller(server, credential) as old, scripted_controller(server, credential) as new:
        await old.hello(make_summary(session))
        assert (await new.hello(make_summary(session))).epoch == 2
        # Its heartbeat may notice before its output does.
        await _send_all(old, [_output(session, 0, b"too late")])
        await _expect_close(old, 4009, "FENCED")
        await new.send(_output(session, 0, b"in time"))
        await new.receive(Ack)
    assert await _stored(session) == b"in time"


async def test_output_of_another_controllers_session_closes_the_connection_and_touches_nothing(server: int) -> None:
    _, credential = await in_database(_enrolled)
    victim = await in_database(lambda: make_session(make_controller("victim")))
    async with scripted_controller(server, credential) as host:
        await host.hello()
        await host.send(_output(victim, 0, b"forged"))
        await _expect_close(host, 4400, "UNKNOWN_SESSION")
    assert await _stored(victim) == b""
    await await_until(lambda: _are_on_record(1), 30, "the violation to be on record")


async def _are_on_record(violations: int) -> bool:
    return await in_database(AuditEvent.objects.filter(action="controller.protocol_violation").count) == violations


async def test_who_hangs_up_when_caught_is_on_record_all_the_same(server: int) -> None:
    _, credential = await in_database(_enrolled)
    victim = await in_database(lambda: make_session(make_controller("victim")))
    for _ in range(10):
        async with scripted_controller(server, credential) as host:
            await host.hello()
            await host.send(_output(victim, 0, b"forged"))
            await host.receive(Error)
            host.hang_up()
    await await_until(lambda: _are_on_record(10), 30, "all violations to be on record")


async def test_output_that_skips_bytes_is_refused_and_what_came_before_is_kept(server: int) -> None:
    controller, credential = await in_database(_enrolled)
    session = await in_database(make_session, controller)
    async with scripted_controller(server, credential) as host:
        await host.hello(make_summary(session))
        await host.send(_output(session, 0, b"ab"), _output(session, 5, b"fg"))
        await _expect_close(host, 4400, "OFFSET_AHEAD")
    assert await _stored(session) == b"ab"


async def test_a_sender_that_ignores_its_window_is_closed(server: int) -> None:
    controller, credential = await in_database(_enrolled)
    session = await in_database(make_session, controller)

    flood = [_output(session, i * 60_000, b"x" * 60_000) for i in range(40)]
    async with scripted_controller(server, credential) as host:
        await host.hello(make_summary(session))
        async with _held(session):
            sending = asyncio.create_task(_send_all(host, flood))
            await _expect_close(host, 4008, "WINDOW_VIOLATED")
            await sending


async def _send_all(host: ScriptedController, messages: list[InteractiveOutput]) -> None:
    try:
        await host.send(*messages)
    except ConnectionClosed:
        return


@asynccontextmanager
async def _held(session: CommandSession) -> AsyncIterator[None]:
    """Nothing can be committed for the session meanwhile."""
    is_held, release = threading.Event(), threading.Event()

    def hold() -> None:
        with transaction.atomic():
            CommandSession.objects.select_for_update().get(id=session.id)
            is_held.set()
            release.wait(60)

    holding = asyncio.create_task(at_length(hold))
    await asyncio.to_thread(is_held.wait, 60)
    try:
        yield
    finally:
        release.set()
        await holding


async def test_an_answer_that_nobody_asked_for_closes_the_connection(server: int) -> None:
    _, credential = await in_database(_enrolled)
    async with scripted_controller(server, credential) as host:
        await host.hello()
        await host.send(FileChunk(reply_to=str(uuid4()), data=b"x"))
        await _expect_close(host, 4400, "UNASKED_ANSWER")


async def test_a_revoked_credential_loses_its_open_connection(server: int) -> None:
    _, credential = await in_database(_enrolled)
    async with scripted_controller(server, credential) as host:
        await host.hello()
        await in_database(lambda: ControllerCredential.objects.update(revoked_at=timezone.now()))
        await _expect_close(host, 4401, "REVOKED")
    with pytest.raises(InvalidStatus):
        async with scripted_controller(server, credential):
            pass
