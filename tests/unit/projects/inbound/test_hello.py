"""HELLO: who is let in, and what becomes of every session either side knows."""

from datetime import timedelta
from typing import Any
from uuid import uuid4

import pytest
from django.utils import timezone

from controller_client.protocol.messages import SessionSummary, StartInteractiveCmd, StreamPosition
from controller_client.protocol.session_state import SessionState
from projects import dispatch
from projects.inbound import hello as greeting
from projects.inbound.refusals import Revoked, SecondInstance, VersionUnsupported
from projects.models import AuditEvent, CommandSession, Controller, ControllerCommand
from tests.support.rows import make_controller, make_hello, make_session, make_summary

pytestmark = pytest.mark.django_db


@pytest.fixture
def controller() -> Controller:
    return make_controller(instance_id="instance-1", boot_id="boot-1", epoch=4)


def _states() -> dict[Any, str]:
    return dict(CommandSession.objects.values_list("id", "state"))


def test_an_accepted_hello_raises_the_epoch_takes_the_lease_and_keeps_what_the_host_says(controller: Controller) -> None:
    welcome, lost = greeting.hello(controller.id, make_hello(hostname="h\0st", capabilities=["pty"] * 500))
    controller.refresh_from_db()
    assert (welcome.epoch, controller.epoch, lost) == (5, 5, [])
    assert controller.lease_expires_at is not None
    assert controller.lease_expires_at > timezone.now()
    assert (controller.hostname, len(controller.capabilities)) == ("h\ufffdst", 64)
    assert AuditEvent.objects.get().action == "controller.connect"


def test_another_version_is_refused(controller: Controller) -> None:
    with pytest.raises(VersionUnsupported):
        greeting.hello(controller.id, make_hello(versions=[2, 3]))


def test_a_revoked_or_unknown_controller_is_refused(controller: Controller) -> None:
    with pytest.raises(Revoked):
        greeting.hello(uuid4(), make_hello())
    Controller.objects.update(revoked_at=timezone.now())
    with pytest.raises(Revoked):
        greeting.hello(controller.id, make_hello())


def test_a_second_instance_is_refused_and_recorded_only_while_the_lease_of_the_first_runs(controller: Controller) -> None:
    greeting.hello(controller.id, make_hello())
    with pytest.raises(SecondInstance):
        greeting.hello(controller.id, make_hello(instance_id="copy"))
    assert AuditEvent.objects.filter(action="controller.second_instance").count() == 1
    Controller.objects.update(lease_expires_at=timezone.now() - timedelta(seconds=1))
    assert greeting.hello(controller.id, make_hello(instance_id="copy"))[0].epoch == 6


def test_the_same_daemon_may_come_back_before_its_old_connection_is_known_to_be_dead(controller: Controller) -> None:
    greeting.hello(controller.id, make_hello())
    assert greeting.hello(controller.id, make_hello())[0].epoch == 6


def test_a_known_session_goes_on_from_what_is_committed(controller: Controller) -> None:
    session = make_session(controller, stdout_next_offset=7)
    piped = make_session(controller, io_mode="pipe", stdout_next_offset=1, stderr_next_offset=2)
    welcome, _ = greeting.hello(controller.id, make_hello(make_summary(session), make_summary(piped)))
    first, second = welcome.sessions
    assert (first.action, [(e.stream, e.offset) for e in first.expected]) == ("continue", [("stdout", 7)])
    assert (second.action, [(e.stream, e.offset) for e in second.expected]) == ("continue", [("stdout", 1), ("stderr", 2)])


def test_a_host_that_has_a_second_stream_is_told_where_it_stands_whatever_was_asked_for(controller: Controller) -> None:
    session = make_session(controller, io_mode="pty", stdout_next_offset=1, stderr_next_offset=2)
    streams = [
        StreamPosition(stream="stdout", first_offset=0, next_offset=1),
        StreamPosition(stream="stderr", first_offset=0, next_offset=9),
    ]
    summary = SessionSummary(session_id=str(session.id), state="running", streams=streams, input_seq=0)
    welcome, _ = greeting.hello(controller.id, make_hello(summary))
    assert [(e.stream, e.offset) for e in welcome.sessions[0].expected] == [("stdout", 1), ("stderr", 2)]


@pytest.mark.parametrize(("state", "action"), [("running", "terminate"), ("done", "forget"), ("lost", "forget")])
def test_a_session_the_server_never_had_ends(controller: Controller, state: str, action: str) -> None:
    others = make_session(make_controller("other"))
    for stranger in (CommandSession(id=uuid4()), others):
        welcome, _ = greeting.hello(controller.id, make_hello(make_summary(stranger, state)))
        assert [(d.action, d.expected) for d in welcome.sessions] == [(action, [])]
    assert _states()[others.id] == "RUNNING"


def test_a_program_whose_session_was_given_up_is_ended_and_its_output_still_taken(controller: Controller) -> None:
    session = make_session(controller, SessionState.EXPIRED)
    welcome, _ = greeting.hello(controller.id, make_hello(make_summary(session)))
    (directive,) = welcome.sessions
    assert (directive.action, len(directive.expected)) == ("terminate", 1)


def test_a_running_session_the_host_no_longer_has_is_lost(controller: Controller) -> None:
    kept, gone, pending = make_session(controller), make_session(controller), make_session(controller, SessionState.PENDING)
    sent, ended = make_session(controller, SessionState.SENT), make_session(controller, SessionState.EXITED)
    _, lost = greeting.hello(controller.id, make_hello(make_summary(kept)))
    assert lost == [str(gone.id)]
    assert _states() == {kept.id: "RUNNING", gone.id: "LOST", pending.id: "PENDING", sent.id: "SENT", ended.id: "EXITED"}
    gone.refresh_from_db()
    assert (gone.end_reason, gone.ended_by, gone.notes) == ("lost", "host", ["the host no longer knows the session"])


def test_after_a_reboot_only_ends_that_are_on_disk_are_left(controller: Controller) -> None:
    dead, done = make_session(controller), make_session(controller)
    hello = make_hello(make_summary(dead, "lost"), make_summary(done, "done"), boot_id="boot-2")
    welcome, lost = greeting.hello(controller.id, hello)
    assert lost == [str(dead.id)]
    assert _states() == {dead.id: "LOST", done.id: "RUNNING"}
    assert [d.action for d in welcome.sessions] == ["continue", "continue"]


def test_a_session_whose_started_was_lost_with_its_connection_runs(controller: Controller) -> None:
    session = make_session(controller, SessionState.SENT)
    seq, _, _ = dispatch.allocate_seq(controller.id)
    message = StartInteractiveCmd(seq=seq, session_id=str(session.id), command="cat")
    dispatch.enqueue(controller_id=controller.id, session_id=session.id, message=message)
    greeting.hello(controller.id, make_hello(make_summary(session)))
    session.refresh_from_db()
    assert (session.state, session.pid) == ("RUNNING", 123)
    command = ControllerCommand.objects.get()
    assert command.settled_at is not None
    assert command.body is None
