"""The lifetimes of a run's sessions are paused until its approval is answered or it is stopped."""

from uuid import uuid4

import pytest

from agent import services
from agent.models import AgentRun
from agent.runs import records
from projects.models import Approval, CommandSession, LifetimeHold
from projects.sessions import lifetimes
from projects.sessions.approvals.answering import approval_answer
from tests.support.rows import make_approval, make_controller, make_session, of_run

pytestmark = pytest.mark.django_db


def _asking() -> tuple[AgentRun, CommandSession]:
    """A run that has one session of its own and asks about its next call."""
    controller = make_controller(capabilities=[lifetimes.CAPABILITY])
    lease = uuid4()
    run = AgentRun.objects.create(
        project=controller.project,
        task="t",
        model="scripted:demo",
        approvals="ask-all",
        state=AgentRun.State.RUNNING,
        lease=lease,
        submitted_by="tests",
        max_steps=5,
        max_tokens=5,
        max_cost_cents=0,
        max_run_seconds=5,
        output_bytes=1000,
    )
    own = make_session(controller, started_by=records.caller_label(run.id))
    make_session(controller, started_by="token:other")
    make_session(controller, kind="background", started_by=records.caller_label(run.id))
    make_approval(controller.project, "send_command_input", **of_run(run.id))
    records.run_parked(run.id, lease)
    return run, own


def test_the_lifetimes_of_its_sessions_stand_until_it_is_answered() -> None:
    _, own = _asking()
    assert [hold.session_id for hold in LifetimeHold.objects.all()] == [own.id]
    approval = Approval.objects.get()
    assert approval_answer(approval_id=approval.id, is_approved=True, actor="admin:ada")
    assert not LifetimeHold.objects.exists()


def test_they_run_on_when_it_is_stopped() -> None:
    run, _ = _asking()
    services.run_stop(run_id=run.id, actor="admin:ada")
    assert not LifetimeHold.objects.exists()
    assert Approval.objects.get().answer == "withdrawn"


def test_it_goes_on_once_every_question_is_answered() -> None:
    run, _ = _asking()
    other = make_approval(run.project, **of_run(run.id, call=1))
    for approval in Approval.objects.all():
        run.refresh_from_db()
        assert run.state == AgentRun.State.WAITING
        assert approval_answer(approval_id=approval.id, is_approved=False, actor="admin:ada")
    run.refresh_from_db()
    assert run.state == AgentRun.State.QUEUED
    assert not approval_answer(approval_id=other.id, is_approved=True, actor="admin:ada")
