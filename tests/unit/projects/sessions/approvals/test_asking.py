"""A call is asked about once, and what was approved is what is carried out."""

import math
from dataclasses import replace
from datetime import timedelta
from typing import Any
from uuid import uuid4

import pytest
from django.contrib.auth.models import User
from django.utils import timezone

from projects.accounts.authentication import Caller
from projects.accounts.permits import Permit
from projects.audit.log import MAX_ACTOR_CHARS, person
from projects.conf import conf
from projects.errors.access import (
    ApprovalDenied,
    ApprovalExpired,
    ApprovalLimitReached,
    ApprovalPending,
    ChangedSinceApproval,
    OwnCall,
)
from projects.errors.calls import RequestIdReused
from projects.errors.hosts import ControllerAmbiguous, ControllerNotFound, NoControllerEnrolled
from projects.models import (
    ActionRequest,
    ApiToken,
    Approval,
    AttentionEvent,
    AuditEvent,
    CommandSession,
    Controller,
    ControllerCommand,
    LifetimeHold,
    Project,
)
from projects.secrets.masks import secret_remember
from projects.sessions import lifetimes
from projects.sessions.approvals.answering import (
    approval_answer,
    approval_expire,
    approvals_forget,
    approvals_overdue,
    approvals_withdraw,
    of_token,
)
from projects.sessions.approvals.asking import (
    Asked,
    HeldCall,
    approval_ask,
    arguments_of,
    asked_now,
)
from projects.sessions.approvals.targets import found_target
from projects.sessions.outbox import allocate_seq
from projects.sessions.transactions.permits import check_host, check_prompt
from projects.storage import clock
from tests.support.rows import make_controller, make_session

pytestmark = pytest.mark.django_db


@pytest.fixture
def caller() -> Caller:
    host = make_controller("web-17", capabilities=[lifetimes.CAPABILITY])
    return Caller(
        host.project_id, "token:agent", frozenset(), token_id=uuid4(), approvals="ask-all"
    )


def _started_by(caller: Caller) -> CommandSession:
    """A session, with the START that the token of the caller sent."""
    session = make_session(Controller.objects.get(), started_by=caller.label)
    ControllerCommand.objects.create(
        controller_id=session.controller_id,
        session=session,
        seq=allocate_seq(session.controller_id),
        type="START_INTERACTIVE_CMD",
        token_id=caller.token_id,
    )
    return session


def _question(caller: Caller, command: str = "rm x", **fields: Any) -> HeldCall:
    arguments = {"command": command}
    return HeldCall(
        **{"caller": caller, "tool": "execute_command", "arguments": arguments, **fields}
    )


def _asked(question: HeldCall) -> Asked:
    asked = approval_ask(question)
    assert asked is not None
    return asked


def test_another_caller_does_not_get_what_was_approved(caller: Caller) -> None:
    asked = _asked(_question(caller, request_id=uuid4()))
    for other in (replace(caller, token_id=uuid4()), replace(caller, label="token:other")):
        with pytest.raises(RequestIdReused):
            approval_ask(_question(other, request_id=asked.request_id))


def test_a_repeat_is_the_same_question(caller: Caller) -> None:
    request_id = uuid4()
    first = _asked(_question(caller, request_id=request_id))
    waiting_longer = {"command": "rm x", "wait_seconds": 9, "request_id": str(request_id)}
    again = _asked(_question(caller, request_id=request_id, arguments=waiting_longer))
    assert first.is_new
    assert again == replace(first, is_new=False)
    assert first.request_id == request_id
    with pytest.raises(RequestIdReused):
        approval_ask(_question(caller, "rm y", request_id=request_id))


def test_a_call_without_an_id_joins_its_open_question_and_no_other(caller: Caller) -> None:
    first = _asked(_question(caller))
    assert _asked(_question(caller)).id == first.id
    assert _asked(_question(caller, "rm y")).id != first.id
    assert _asked(_question(replace(caller, token_id=uuid4()))).id != first.id
    approval_answer(approval_id=first.id, is_approved=True, actor="admin:ada")
    assert _asked(_question(caller)).require_approved().approval_id == first.id
    ActionRequest.objects.create(
        project_id=caller.project_id, request_id=first.request_id, action="start"
    )
    assert _asked(_question(caller)).id != first.id


def test_what_is_asked_is_on_record_and_calls_a_person(caller: Caller) -> None:
    asked = _asked(_question(caller))
    row = Approval.objects.get(id=asked.id)
    assert (row.host, row.risk, arguments_of(row)) == ("web-17", "destructive", {"command": "rm x"})
    assert b"rm x" not in bytes(row.sealed_arguments)
    assert AuditEvent.objects.get(action="approval.ask").detail["approval"] == asked.id
    event = AttentionEvent.objects.get()
    assert (event.kind, event.path) == ("approval_wanted", f"/approvals/{asked.id}/")
    approval_answer(approval_id=asked.id, is_approved=False, actor="admin:ada", reason="no")
    event.refresh_from_db()
    assert (event.resolution, event.resolved_by) == ("denied", "admin:ada")


@pytest.mark.parametrize("member", ["input_text", "keys"])
def test_an_answer_to_a_question_for_a_secret_is_not_stored(caller: Caller, member: str) -> None:
    host = make_controller("db", project=Project.objects.get())
    session = make_session(host, terminal_state="awaiting_input", terminal_kind="secret")
    arguments = {"session_id": str(session.id), member: "hunter2"}
    asked = _asked(_question(caller, tool="send_command_input", arguments=arguments))
    assert arguments_of(Approval.objects.get(id=asked.id))[member] == "(hidden input)"
    other = {**arguments, member: "hunter3"}
    assert _asked(_question(caller, tool="send_command_input", arguments=other)).id != asked.id


def test_a_prompt_that_shows_a_typed_secret_is_kept_and_compared_masked(caller: Caller) -> None:
    host = make_controller("db", project=Project.objects.get())
    shows = {"terminal_kind": "line", "terminal_prompt": "Use hunter2-word? "}
    session = make_session(host, terminal_state="awaiting_input", **shows)
    secret_remember(session.id, b"hunter2-word")
    arguments = {"session_id": str(session.id), "input_text": "yes\n"}
    asked = _asked(_question(caller, tool="send_command_input", arguments=arguments))
    assert Approval.objects.get(id=asked.id).prompt == "line: Use ******? "
    approved = caller.cleared(asked.permit)
    check_prompt(approved, session.id, session.input_seq + 1)
    CommandSession.objects.update(terminal_prompt="Delete hunter2-word? ")
    with pytest.raises(ChangedSinceApproval):
        check_prompt(approved, session.id, session.input_seq + 1)


def test_the_lifetime_of_the_session_stands_until_the_answer(caller: Caller) -> None:
    host = make_controller("db", project=Project.objects.get())
    session = make_session(host)
    arguments = {"session_id": str(session.id), "terminate": True}
    asked = _asked(_question(caller, tool="send_command_input", arguments=arguments))
    assert LifetimeHold.objects.get().session_id == session.id
    approval_answer(approval_id=asked.id, is_approved=True, actor="admin:ada")
    assert not LifetimeHold.objects.exists()


def test_a_question_ends_once_and_its_end_is_told(caller: Caller) -> None:
    asked = _asked(_question(caller))
    with pytest.raises(ApprovalPending) as pending:
        asked.require_approved()
    body = pending.value.body()
    assert body["retryable"]
    assert body["request_id"] == str(asked.request_id)
    assert body["approval_url"].endswith(f"/approvals/{asked.id}/")
    assert approval_answer(
        approval_id=asked.id, is_approved=False, actor="admin:ada", reason="use the staging host"
    )
    assert not approval_answer(approval_id=asked.id, is_approved=True, actor="admin:bob")
    assert not approval_expire(asked.id)
    with pytest.raises(ApprovalDenied, match="use the staging host"):
        asked_now(asked.id).require_approved()


def test_an_unanswered_question_counts_as_denied_when_its_time_is_over(caller: Caller) -> None:
    asked = _asked(_question(caller))
    Approval.objects.update(expires_at=timezone.now() - timedelta(seconds=1))
    with pytest.raises(ApprovalExpired):
        asked_now(asked.id).require_approved()
    assert not approval_answer(approval_id=asked.id, is_approved=True, actor="admin:ada")
    assert approvals_overdue() == [asked.id]
    assert approval_expire(asked.id)
    assert Approval.objects.get().answer == "expired"


def test_a_question_has_its_whole_time_when_the_clock_is_put_forward(
    caller: Caller, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = _asked(_question(caller))
    monkeypatch.setattr(clock, "STEADINESS", clock.Steadiness())
    seconds, now = clock.now_seconds, clock.now
    monkeypatch.setattr(clock, "now_seconds", lambda: seconds() + 7200)
    monkeypatch.setattr(clock, "now", lambda: now() + timedelta(hours=2))
    assert approvals_overdue() == []
    assert approval_answer(approval_id=asked.id, is_approved=True, actor="admin:ada")
    assert asked_now(asked.id).require_approved().approval_id == asked.id
    # Once that time is over on any clock, the question is over.
    monkeypatch.setattr(clock.STEADINESS, "_stepped_at", -math.inf)
    later = timedelta(hours=2, seconds=conf.approval_seconds + 1)
    monkeypatch.setattr(clock, "now", lambda: now() + later)
    with pytest.raises(ApprovalExpired):
        asked_now(asked.id).require_approved()


def test_an_approved_call_has_to_begin_in_time(
    caller: Caller,
) -> None:
    asked = _asked(_question(caller))
    approval_answer(approval_id=asked.id, is_approved=True, actor="admin:ada")
    Approval.objects.update(expires_at=timezone.now() - timedelta(seconds=1))
    with pytest.raises(ApprovalExpired):
        asked_now(asked.id).require_approved()
    ActionRequest.objects.create(
        project_id=caller.project_id, request_id=asked.request_id, action="start"
    )
    assert asked_now(asked.id).require_approved().approval_id == asked.id


def test_a_question_is_kept_as_long_as_sessions_are(caller: Caller, settings: Any) -> None:
    settings.SESSION_RETENTION_SECONDS = 60
    asked = [_asked(_question(caller, f"rm {number}")) for number in range(3)]
    for one in asked[:2]:
        approval_answer(approval_id=one.id, is_approved=False, actor="admin:ada")
    long_ago = timezone.now() - timedelta(seconds=61)
    Approval.objects.filter(id=asked[0].id).update(answered_at=long_ago)
    assert approvals_forget() == 1
    assert [row.id for row in Approval.objects.all()] == [one.id for one in asked[1:]]


def test_a_withdrawn_question_cannot_be_answered(caller: Caller) -> None:
    assert caller.token_id is not None
    asked = _asked(_question(caller))
    approvals_withdraw(of_token(caller.token_id), actor="admin:ada")
    assert not approval_answer(approval_id=asked.id, is_approved=True, actor="admin:ada")
    with pytest.raises(ApprovalExpired):
        asked_now(asked.id).require_approved()


def test_open_questions_of_a_project_are_bounded(caller: Caller, settings: Any) -> None:
    settings.MAX_PENDING_APPROVALS = 2
    asked = [_asked(_question(caller, f"rm {number}")) for number in range(2)]
    with pytest.raises(ApprovalLimitReached):
        approval_ask(_question(caller, "rm more"))
    assert _asked(_question(caller, "rm 0")).id == asked[0].id
    approval_answer(approval_id=asked[0].id, is_approved=False, actor="admin:ada")
    assert _asked(_question(caller, "rm more")).is_pending


def test_nobody_approves_their_own_call_where_four_eyes_are_wanted(caller: Caller) -> None:
    asked = _asked(_question(caller, owner="admin:ada"))
    row = Approval.objects.get(id=asked.id)
    row.project.wants_four_eyes = True
    row.project.save()
    with pytest.raises(OwnCall):
        approval_answer(approval_id=asked.id, is_approved=True, actor="admin:ada")
    assert approval_answer(approval_id=asked.id, is_approved=True, actor="admin:bob")


@pytest.mark.parametrize("name", ["ada", "a" * 150])
def test_the_owner_of_a_token_is_known_by_any_name(caller: Caller, name: str) -> None:
    owner = User.objects.create(username=name)
    token = ApiToken.objects.create(
        project_id=caller.project_id, name="agent", key_id="k", digest="d", owner=owner
    )
    asked = _asked(_question(replace(caller, token_id=token.id)))
    Project.objects.update(wants_four_eyes=True)
    with pytest.raises(OwnCall):
        approval_answer(approval_id=asked.id, is_approved=True, actor=person(name))
    other = person(f"{name[:-1]}b")
    assert len(other) <= MAX_ACTOR_CHARS
    assert approval_answer(approval_id=asked.id, is_approved=True, actor=other)


def test_ask_risky_does_not_ask_about_the_end_of_an_own_session(caller: Caller) -> None:
    others = make_session(Controller.objects.get(), started_by="token:other")
    for session, is_asked in ((_started_by(caller), False), (others, True)):
        question = _question(
            replace(caller, approvals="ask-risky"),
            tool="send_command_input",
            arguments={"terminate": True, "session_id": str(session.id)},
        )
        assert (approval_ask(question) is not None) is is_asked


def test_nobody_is_asked_about_a_start_that_leads_to_no_host(caller: Caller) -> None:
    make_controller("web-18", project=Project.objects.get())
    with pytest.raises(ControllerAmbiguous):
        approval_ask(_question(caller))
    with pytest.raises(ControllerNotFound):
        approval_ask(_question(caller, arguments={"command": "rm x", "controller": "web-19"}))
    Controller.objects.update(revoked_at=timezone.now())
    with pytest.raises(NoControllerEnrolled):
        approval_ask(_question(caller))
    assert not Approval.objects.exists()


def test_an_approved_start_runs_on_no_host_that_nobody_saw(caller: Caller) -> None:
    host = Controller.objects.get()
    check_host(replace(caller, permit=Permit(1, host.id)), host.id)
    for seen in (None, uuid4()):
        with pytest.raises(ChangedSinceApproval):
            check_host(replace(caller, permit=Permit(1, seen)), host.id)


def test_a_session_is_its_tokens_own_and_no_other_tokens_of_that_name(caller: Caller) -> None:
    asked = {"session_id": str(_started_by(caller).id), "terminate": True}
    for token_id, is_own in ((caller.token_id, True), (uuid4(), False)):
        found = found_target(replace(caller, token_id=token_id), "send_command_input", asked)
        assert found.standing.is_own == is_own
