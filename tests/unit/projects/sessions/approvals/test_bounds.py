"""An approval is for one call of one caller, once: what is not that call is not approved."""

from dataclasses import replace
from typing import Any
from uuid import uuid4

import pytest

from projects.accounts.authentication import Caller
from projects.accounts.credentials import api_token_create
from projects.accounts.permits import Permit
from projects.enrolment.revocation import api_token_revoke
from projects.errors.access import (
    ApprovalExpired,
    ApprovalNotFound,
    ChangedSinceApproval,
    OwnCall,
)
from projects.errors.calls import RequestIdReused
from projects.errors.sessions import SessionNotFound
from projects.models import ActionRequest, Approval, AuditEvent, Controller, Project
from projects.policy.call_risk import QUIET_ARGUMENTS, WAITING_ARGUMENTS
from projects.sessions.approvals.answering import approval_answer
from projects.sessions.approvals.asking import Asked, HeldCall, approval_ask, asked_now
from projects.sessions.transactions.permits import check_log, check_prompt, use
from tests.support.rows import make_controller, make_session

pytestmark = pytest.mark.django_db

GIVEN = {
    "command": "deploy",
    "cwd": "/srv",
    "env": {"A": "1", "B": "2"},
    "rows": 24,
    "lifetime_seconds": 60,
    "use_pty": False,
    "keys": ["up", "enter"],
}


@pytest.fixture
def caller() -> Caller:
    host = make_controller("web-17")
    return _caller(host.project)


def _caller(project: Project) -> Caller:
    return Caller(project.id, "token:agent", frozenset(), token_id=uuid4(), approvals="ask-all")


def _asked(caller: Caller, tool: str = "execute_command", **fields: Any) -> Asked:
    question = HeldCall(**{"caller": caller, "tool": tool, "arguments": dict(GIVEN), **fields})
    asked = approval_ask(question)
    assert asked is not None
    return asked


def _approved(caller: Caller, **fields: Any) -> Asked:
    asked = _asked(caller, **fields)
    assert approval_answer(approval_id=asked.id, is_approved=True, actor="admin:ada")
    return asked_now(asked.id)


@pytest.mark.parametrize(
    "other",
    [
        {"command": "deploy "},
        {"command": "Deploy"},
        {"command": "deploy\u200b"},
        {"cwd": "/srv/"},
        {"cwd": None},
        {"env": {"A": "1"}},
        {"env": {"A": "2", "B": "1"}},
        {"env": {"A": "1", "B": 2}},
        {"rows": 25},
        {"rows": "24"},
        {"lifetime_seconds": 61},
        {"use_pty": True},
        {"use_pty": 0},
        {"keys": ["enter", "up"]},
        {"keys": ["up"]},
        {"controller": "web-17"},
        {"input": "y\n"},
    ],
)
def test_a_call_with_any_other_argument_is_not_the_one_that_was_approved(
    caller: Caller, other: dict[str, Any]
) -> None:
    asked = _approved(caller, request_id=uuid4())
    changed = GIVEN | other
    with pytest.raises(RequestIdReused):
        _asked(caller, request_id=asked.request_id, arguments=changed)
    assert _asked(caller, arguments=changed).is_pending


def test_the_order_of_arguments_makes_no_other_call(caller: Caller) -> None:
    asked = _approved(caller, request_id=uuid4())
    turned = dict(reversed(GIVEN.items())) | {"env": {"B": "2", "A": "1"}}
    again = _asked(caller, request_id=asked.request_id, arguments=turned)
    assert again.require_approved().approval_id == asked.id


@pytest.mark.parametrize("name", sorted(WAITING_ARGUMENTS))
def test_only_what_a_repeat_may_say_otherwise_is_left_out(caller: Caller, name: str) -> None:
    assert name in QUIET_ARGUMENTS
    asked = _approved(caller, request_id=uuid4())
    waits = GIVEN | {name: "something else"}
    assert _asked(caller, request_id=asked.request_id, arguments=waits).id == asked.id


def test_another_tool_with_these_arguments_is_another_call(caller: Caller) -> None:
    asked = _approved(caller, request_id=uuid4())
    with pytest.raises(RequestIdReused):
        _asked(caller, "start_command", request_id=asked.request_id)
    assert _asked(caller, "start_command").is_pending


def test_an_approval_of_one_project_is_none_of_another(caller: Caller) -> None:
    asked = _approved(caller, request_id=uuid4())
    host = make_controller("web-18", project=Project.objects.create(name="other"))
    other = replace(caller, project_id=host.project_id)
    theirs = _asked(other, request_id=asked.request_id)
    assert theirs.is_pending
    assert theirs.id != asked.id
    assert _asked(other).is_pending


def test_nobody_is_asked_about_a_session_of_another_project(caller: Caller) -> None:
    session = make_session(make_controller("db", project=Project.objects.create(name="other")))
    for handle in (str(session.id), str(uuid4()), "nonsense", "x" * 10_000):
        with pytest.raises(SessionNotFound):
            _asked(caller, "write_input", arguments={"sessionId": handle, "input": "y\n"})
    assert not Approval.objects.exists()


def test_an_approved_call_is_carried_out_once_whoever_repeats_it(caller: Caller) -> None:
    asked = _approved(caller, request_id=uuid4())
    cleared = caller.cleared(asked.require_approved())
    use(cleared)
    with pytest.raises(ChangedSinceApproval):
        use(cleared)
    # What came of it is not kept any more.
    with pytest.raises(ChangedSinceApproval):
        asked_now(asked.id).require_approved()
    with pytest.raises(ChangedSinceApproval):
        _asked(caller, request_id=asked.request_id).require_approved()
    assert _asked(caller).is_pending, "the same call without an id is another question"


def test_a_call_that_was_not_held_uses_no_approval(caller: Caller) -> None:
    asked = _approved(caller)
    use(caller)
    use(None)
    check_prompt(caller, uuid4(), 1)
    check_log(caller, uuid4(), "/var/log/x")
    assert Approval.objects.get(id=asked.id).used_at is None


def test_an_approved_input_is_for_the_place_that_was_shown(caller: Caller) -> None:
    waits = {"terminal_state": "awaiting_input", "terminal_kind": "line", "terminal_prompt": "? "}
    session = make_session(Controller.objects.get(), **waits)
    arguments = {"session_id": str(session.id), "input_text": "y\n"}
    asked = _approved(caller, tool="send_command_input", arguments=arguments)
    cleared, next_seq = caller.cleared(asked.permit), session.input_seq + 1
    check_prompt(cleared, session.id, next_seq)
    for seq in (next_seq - 1, next_seq + 1):
        with pytest.raises(ChangedSinceApproval, match="somebody has typed"):
            check_prompt(cleared, session.id, seq)
    for changed in ({"terminal_kind": "secret"}, {"terminal_prompt": "?"}, {"terminal_state": ""}):
        for name, value in (waits | changed).items():
            setattr(session, name, value)
        session.save()
        with pytest.raises(ChangedSinceApproval, match="left the prompt"):
            check_prompt(cleared, session.id, next_seq)


def test_an_input_for_a_program_that_asked_nothing_answers_no_question(caller: Caller) -> None:
    session = make_session(Controller.objects.get(), terminal_state="running")
    arguments = {"session_id": str(session.id), "input_text": "y\n"}
    asked = _approved(caller, tool="send_command_input", arguments=arguments)
    cleared = caller.cleared(asked.permit)
    check_prompt(cleared, session.id, session.input_seq + 1)
    session.terminal_state, session.terminal_prompt = "awaiting_input", "Delete? "
    session.save()
    with pytest.raises(ChangedSinceApproval, match="came to a prompt"):
        check_prompt(cleared, session.id, session.input_seq + 1)


@pytest.mark.parametrize("log", ["/var/log/b", "/var/log/a/", ""])
def test_an_approved_monitor_is_of_one_log_on_one_host(caller: Caller, log: str) -> None:
    host = Controller.objects.get()
    cleared = replace(caller, permit=Permit(1, host.id, log_file="/var/log/a"))
    check_log(cleared, host.id, "/var/log/a")
    for place in ((host.id, log), (uuid4(), "/var/log/a")):
        with pytest.raises(ChangedSinceApproval):
            check_log(cleared, *place)


def test_the_questions_of_a_revoked_token_are_withdrawn_and_no_others() -> None:
    project = make_controller("web-17").project
    token, _ = api_token_create(project=project, name="agent", scopes=["session:start"])
    mine = replace(_caller(project), token_id=token.id)
    asked, approved = _asked(mine), _approved(mine, arguments={"command": "later"})
    others = _asked(_caller(project), arguments={"command": "other"})
    for _ in range(2):
        api_token_revoke(token=token, actor="admin:ada")
        with pytest.raises(ApprovalExpired):
            asked_now(asked.id).require_approved()
        assert not approval_answer(approval_id=asked.id, is_approved=True, actor="admin:bob")
        assert asked_now(others.id).is_pending
    # The approved one waits for a caller that is not let in any more.
    assert not ActionRequest.objects.filter(request_id=approved.request_id).exists()
    ends = AuditEvent.objects.filter(action="approval.answer", detail__answer="withdrawn")
    assert [row.detail["approval"] for row in ends] == [asked.id]


@pytest.mark.parametrize("is_approved", [True, False])
@pytest.mark.parametrize("owner", [{"owner": "admin:ada"}, {"origin": {"told_by": ["admin:ada"]}}])
def test_four_eyes_bind_who_asked_and_who_told_the_run_from_the_moment_on(
    caller: Caller, owner: dict[str, Any], *, is_approved: bool
) -> None:
    asked = _asked(caller, **owner)
    Project.objects.update(wants_four_eyes=True)
    with pytest.raises(OwnCall):
        approval_answer(approval_id=asked.id, is_approved=is_approved, actor="admin:ada")
    assert asked_now(asked.id).is_pending
    Project.objects.update(wants_four_eyes=False)
    assert approval_answer(approval_id=asked.id, is_approved=is_approved, actor="admin:ada")


def test_a_question_that_is_not_there_is_answered_by_nobody(caller: Caller) -> None:
    asked = _asked(caller)
    for number in (asked.id + 1, 0, -1, 2**63 - 1):
        with pytest.raises(ApprovalNotFound):
            approval_answer(approval_id=number, is_approved=True, actor="admin:ada")
        with pytest.raises(ApprovalNotFound):
            asked_now(number)


def test_a_very_long_reason_is_kept_in_part(caller: Caller) -> None:
    asked = _asked(caller)
    assert approval_answer(
        approval_id=asked.id, is_approved=False, actor="admin:ada", reason="no " * 10_000
    )
    assert len(asked_now(asked.id).reason) == 1000
