"""HELLO: who is let in, and what becomes of every session either side knows."""

from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import closing
from datetime import timedelta
from typing import Any, Literal
from uuid import uuid4

import pytest
from django.db import connection, transaction
from django.utils import timezone

from controller_client.protocol.messages import SessionSummary, StartInteractiveCmd, StreamPosition
from controller_client.protocol.session_state import SessionState
from projects.conf import conf
from projects.link.inbound import hello as greeting
from projects.link.inbound.commands import take_commands
from projects.link.inbound.refusals import (
    Revoked,
    SecondInstance,
    StillConnected,
    VersionUnsupported,
)
from projects.link.inbound.twins import lose_unnamed
from projects.models import AuditEvent, CommandSession, Controller, ControllerCommand
from projects.sessions import outbox
from tests.support.rows import make_controller, make_hello, make_session, make_summary

pytestmark = pytest.mark.django_db


@pytest.fixture
def controller() -> Controller:
    return make_controller(instance_id="instance-1", boot_id="boot-1", epoch=4)


def _states() -> dict[Any, str]:
    return dict(CommandSession.objects.values_list("id", "state"))


def test_an_accepted_hello_raises_the_epoch_and_stores_the_hosts_facts(
    controller: Controller,
) -> None:
    welcome, missing = greeting.hello(
        controller.id, make_hello(hostname="h\0st", capabilities=["pty"] * 500)
    )
    controller.refresh_from_db()
    assert (welcome.epoch, controller.epoch, missing.lost) == (5, 5, [])
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


def test_a_second_instance_is_refused_only_while_the_first_ones_lease_runs(
    controller: Controller,
) -> None:
    greeting.hello(controller.id, make_hello())
    with pytest.raises(SecondInstance):
        greeting.hello(controller.id, make_hello(instance_id="copy"))
    assert AuditEvent.objects.filter(action="controller.second_instance").count() == 1
    Controller.objects.update(lease_expires_at=timezone.now() - timedelta(hours=1))
    assert greeting.hello(controller.id, make_hello(instance_id="copy"))[0].epoch == 6


def test_another_boot_waits_for_the_lease_and_loses_nothing_before(controller: Controller) -> None:
    session = make_session(controller)
    greeting.hello(controller.id, make_hello(make_summary(session)))
    with pytest.raises(StillConnected):
        greeting.hello(controller.id, make_hello(boot_id="boot-2"))
    assert _states() == {session.id: "RUNNING"}
    Controller.objects.update(lease_expires_at=timezone.now() - timedelta(hours=1))
    _, missing = greeting.hello(controller.id, make_hello(boot_id="boot-2"))
    assert missing.lost == [str(session.id)]


def test_the_same_daemon_may_reconnect_before_its_old_connection_is_closed(
    controller: Controller,
) -> None:
    greeting.hello(controller.id, make_hello())
    assert greeting.hello(controller.id, make_hello())[0].epoch == 6


def test_a_known_session_goes_on_from_what_is_committed(controller: Controller) -> None:
    session = make_session(controller, stdout_next_offset=7)
    piped = make_session(controller, io_mode="pipe", stdout_next_offset=1, stderr_next_offset=2)
    welcome, _ = greeting.hello(
        controller.id, make_hello(make_summary(session), make_summary(piped))
    )
    first, second = welcome.sessions
    assert (first.action, [(e.stream, e.offset) for e in first.expected]) == (
        "continue",
        [("stdout", 7)],
    )
    assert (second.action, [(e.stream, e.offset) for e in second.expected]) == (
        "continue",
        [("stdout", 1), ("stderr", 2)],
    )


def test_a_host_that_reports_stderr_is_told_its_offset_in_any_mode(controller: Controller) -> None:
    session = make_session(controller, io_mode="pty", stdout_next_offset=1, stderr_next_offset=2)
    streams = [
        StreamPosition(stream="stdout", first_offset=0, next_offset=1),
        StreamPosition(stream="stderr", first_offset=0, next_offset=9),
    ]
    summary = SessionSummary(
        session_id=str(session.id), state="running", streams=streams, input_seq=0
    )
    welcome, _ = greeting.hello(controller.id, make_hello(summary))
    assert [(e.stream, e.offset) for e in welcome.sessions[0].expected] == [
        ("stdout", 1),
        ("stderr", 2),
    ]


@pytest.mark.parametrize(
    ("state", "action"), [("running", "terminate"), ("done", "forget"), ("lost", "forget")]
)
def test_a_session_of_another_host_ends_and_that_is_on_record(
    controller: Controller, state: str, action: str
) -> None:
    others = make_session(make_controller("other"))
    welcome, _ = greeting.hello(controller.id, make_hello(make_summary(others, state)))
    assert [(d.action, d.expected) for d in welcome.sessions] == [(action, [])]
    assert _states()[others.id] == "RUNNING"
    assert (
        AuditEvent.objects.filter(action="session.refuse_unknown", session_id=others.id).count()
        == 1
    )


def test_an_expired_sessions_program_is_terminated_and_its_output_taken(
    controller: Controller,
) -> None:
    session = make_session(controller, SessionState.EXPIRED)
    welcome, _ = greeting.hello(controller.id, make_hello(make_summary(session)))
    (directive,) = welcome.sessions
    assert (directive.action, len(directive.expected)) == ("terminate", 1)


def test_a_running_session_the_host_no_longer_has_is_lost(controller: Controller) -> None:
    kept, gone, pending = (
        make_session(controller),
        make_session(controller),
        make_session(controller, SessionState.PENDING),
    )
    sent, ended = (
        make_session(controller, SessionState.SENT),
        make_session(controller, SessionState.EXITED),
    )
    welcome, missing = greeting.hello(controller.id, make_hello(make_summary(kept)))
    assert missing.lost == [], "it may be another daemon's, of which this one is a copy"
    assert missing.unnamed == {gone.id}
    lease, epoch = conf.lease_seconds, welcome.epoch
    assert lose_unnamed(controller.id, epoch - 1, missing.unnamed, lease) == []
    assert lose_unnamed(controller.id, epoch, missing.unnamed, lease) == [str(gone.id)]
    assert lose_unnamed(controller.id, epoch, missing.unnamed, lease) == []
    assert _states() == {
        kept.id: "RUNNING",
        gone.id: "LOST",
        pending.id: "PENDING",
        sent.id: "SENT",
        ended.id: "EXITED",
    }
    gone.refresh_from_db()
    assert (gone.end_reason, gone.ended_by, gone.notes) == (
        "lost",
        "host",
        ["the host no longer knows the session"],
    )


def _unnamed(controller: Controller, seconds: float, *named: SessionSummary) -> list[str]:
    """Connect with a HELLO that names these sessions, and break after so many seconds."""
    welcome, missing = greeting.hello(controller.id, make_hello(*named))
    return lose_unnamed(controller.id, welcome.epoch, missing.unnamed, seconds)


def test_connections_that_break_count_together_until_one_names_the_session(
    controller: Controller,
) -> None:
    session = make_session(controller)
    most = conf.lease_seconds - 1.0
    assert _unnamed(controller, most) == []
    assert _unnamed(controller, most, make_summary(session)) == []
    assert _unnamed(controller, most) == []
    assert _states() == {session.id: "RUNNING"}, "one HELLO named it: the count began again"
    assert _unnamed(controller, 1.0) == [str(session.id)]
    assert _states() == {session.id: "LOST"}


@pytest.mark.parametrize(
    ("changes", "state"),
    [({}, "SENT"), ({"boot_id": "boot-2"}, "LOST"), ({"instance_id": "instance-2"}, "LOST")],
)
def test_a_start_that_was_sent_is_decided_by_the_same_host_alone(
    controller: Controller, changes: dict[str, str], state: str
) -> None:
    session = make_session(controller, SessionState.SENT)
    _, (lost, _) = greeting.hello(controller.id, make_hello(**changes))
    session.refresh_from_db()
    assert (session.state, session.failure_code, lost) == (
        state,
        "START_LOST" if lost else "",
        [str(session.id)] if lost else [],
    )


def _start(session: CommandSession) -> None:
    """Put the START of a session into the outbox."""
    with transaction.atomic():
        seq = outbox.allocate_seq(session.controller_id)
        command = StartInteractiveCmd(seq=seq, session_id=str(session.id), command="cat")
        outbox.enqueue(controller_id=session.controller_id, session_id=session.id, message=command)


@pytest.mark.parametrize(
    ("locks", "is_kept"),
    [
        (("a", "a"), False),
        (("a", "b"), True),
        (("a", "b", "a"), False),
        (("a", "b", "a", "b"), True),
        (("a", "b", "c"), True),
        (("a", ""), True),
        (("", "a"), False),
        (("", ""), False),
    ],
)
def test_a_start_without_an_answer_is_kept_for_the_lock_it_was_sent_to(
    controller: Controller, locks: tuple[str, ...], is_kept: bool
) -> None:
    greeting.hello(controller.id, make_hello(lock_id=locks[0]))
    session = make_session(controller, SessionState.PENDING)
    _start(session)
    controller.refresh_from_db()
    assert len(take_commands(controller.id, controller.epoch)[0]) == 1
    for lock in locks[1:]:
        welcome, missing = greeting.hello(controller.id, make_hello(lock_id=lock))
    assert missing.unnamed == ({session.id} if is_kept else frozenset())
    sent, _ = take_commands(controller.id, welcome.epoch, unnamed=missing.unnamed)
    assert len(sent) == (not is_kept)
    lost = lose_unnamed(controller.id, welcome.epoch, missing.unnamed, conf.lease_seconds)
    session.refresh_from_db()
    assert (len(lost), session.failure_code) == (is_kept, "START_LOST" if is_kept else "")


@pytest.mark.django_db(transaction=True)
def test_a_start_is_not_sent_while_another_daemon_is_let_in(controller: Controller) -> None:
    epoch = greeting.hello(controller.id, make_hello(lock_id="a"))[0].epoch
    session = make_session(controller, SessionState.PENDING)
    _start(session)

    def sent(epoch: int) -> int:
        with closing(connection):
            return len(take_commands(controller.id, epoch)[0])

    with ThreadPoolExecutor(1) as threads:
        with transaction.atomic():
            welcome, missing = greeting.hello(controller.id, make_hello(lock_id="b"))
            sending = threads.submit(sent, epoch)
            # It is sent to the first daemon now, or waits for the end of this transaction.
            wait([sending], timeout=0.5)
        assert sending.result() == 0
    assert missing.unnamed == frozenset()
    assert sent(welcome.epoch) == 1


def test_a_start_that_was_never_sent_goes_to_whoever_connects(controller: Controller) -> None:
    greeting.hello(controller.id, make_hello(lock_id="a"))
    make_session(controller, SessionState.PENDING)
    assert greeting.hello(controller.id, make_hello(lock_id="b"))[1].unnamed == frozenset()


def test_after_a_reboot_only_ends_that_are_on_disk_are_left(controller: Controller) -> None:
    dead, done = make_session(controller), make_session(controller)
    hello = make_hello(make_summary(dead, "lost"), make_summary(done, "done"), boot_id="boot-2")
    welcome, missing = greeting.hello(controller.id, hello)
    assert missing.lost == [str(dead.id)]
    assert _states() == {dead.id: "LOST", done.id: "RUNNING"}
    assert [d.action for d in welcome.sessions] == ["continue", "continue"]


def test_a_session_whose_started_was_lost_with_its_connection_runs(controller: Controller) -> None:
    session = make_session(controller, SessionState.SENT)
    seq = outbox.allocate_seq(controller.id)
    message = StartInteractiveCmd(seq=seq, session_id=str(session.id), command="cat")
    outbox.enqueue(controller_id=controller.id, session_id=session.id, message=message)
    greeting.hello(controller.id, make_hello(make_summary(session)))
    session.refresh_from_db()
    assert (session.state, session.pid) == ("RUNNING", 123)
    command = ControllerCommand.objects.get()
    assert command.settled_at is not None
    assert command.body is None


@pytest.mark.parametrize("said", ["running", "done", "lost"])
@pytest.mark.parametrize("stored", [SessionState.PENDING, SessionState.SENT])
def test_a_start_the_host_names_was_sent_and_may_run(
    controller: Controller, stored: SessionState, said: Literal["running", "done", "lost"]
) -> None:
    session = make_session(controller, stored)
    greeting.hello(controller.id, make_hello(make_summary(session, said)))
    session.refresh_from_db()
    assert session.state == ("RUNNING" if said == "running" else "SENT")
    assert (session.started_at is not None, session.pid is not None) == (said == "running",) * 2


@pytest.mark.parametrize(
    ("told", "kept"),
    [
        (None, None),
        ([], []),
        (
            [
                "/var/log",
                "relative",
                "/a\0",
                "/b\x1b[2J",
                "/c\nd",
                "/" + "x" * 256,
                "/tmp/ssk-sessions",
            ],
            ["/var/log", "/tmp/ssk-sessions"],
        ),
        ([f"/{number}" for number in range(99)], [f"/{number}" for number in range(16)]),
    ],
)
def test_log_directories_are_kept_as_they_were_told_or_not_at_all(
    controller: Controller, told: list[str] | None, kept: list[str] | None
) -> None:
    greeting.hello(controller.id, make_hello(log_roots=told))
    controller.refresh_from_db()
    assert controller.log_roots == kept


def test_an_older_daemon_takes_back_what_a_newer_one_told(controller: Controller) -> None:
    greeting.hello(controller.id, make_hello(log_roots=["/var/log"]))
    greeting.hello(controller.id, make_hello())
    controller.refresh_from_db()
    assert controller.log_roots is None
