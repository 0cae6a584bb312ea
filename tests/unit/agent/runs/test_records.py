"""A worker writes only under its lease, and a run goes from one worker to the next by its row."""

from collections.abc import Callable
from datetime import timedelta
from typing import Any
from uuid import UUID, uuid4

import pytest
from django.utils import timezone

from agent import services
from agent.llm.conversation import Answer, Call
from agent.models import AgentRun, AgentStep
from agent.runs import judgement, records
from projects.models import Approval, Controller, Project
from tests.support.rows import make_approval, make_controller, of_run

pytestmark = pytest.mark.django_db
_STATE = AgentRun.State
_SECONDS = 30.0


@pytest.fixture
def host() -> Controller:
    return make_controller(lease_expires_at=timezone.now() + timedelta(minutes=5))


@pytest.fixture
def claimed(host: Controller) -> tuple[UUID, UUID]:
    _submitted(host)
    return _claimed()


def _submitted(host: Controller, **fields: Any) -> AgentRun:
    return services.run_submit(
        project=host.project, task="tidy", actor="test", model="scripted:demo", **fields
    )


def _claimed(**fields: Any) -> tuple[UUID, UUID]:
    found = records.run_claim(_SECONDS, **fields)
    assert found is not None
    return found


def _answered(run_id: UUID, lease: UUID, answer: Answer, **fields: Any) -> AgentStep:
    given = {"number": 1, "said_before": (), "is_nudge": False, "hidden": (), **fields}
    return records.step_answered(run_id, lease, answer=answer, **given)


def _ended(run_id: UUID, lease: UUID, state: str = _STATE.FAILED) -> None:
    records.run_ended(run_id, lease, state, stop_reason="done", report="r", is_successful=True)


_WRITES: dict[str, Callable[[UUID, UUID], object]] = {
    "beat": lambda run_id, lease: records.run_beat(run_id, lease, _SECONDS, 1.0),
    "draft": lambda run_id, lease: records.run_drafted(run_id, lease, "so far"),
    "notice": lambda run_id, lease: records.run_noticed(run_id, lease, "busy"),
    "park": records.run_parked,
    "end": _ended,
    "answer": lambda run_id, lease: _answered(run_id, lease, Answer(text="ok", input_tokens=3)),
    "complete": lambda run_id, lease: records.step_completed(run_id, lease, AgentStep()),
}


@pytest.mark.parametrize("write", _WRITES)
def test_nothing_is_written_under_a_lease_that_is_lost(
    claimed: tuple[UUID, UUID], write: str
) -> None:
    before = AgentRun.objects.values().get()
    with pytest.raises(records.LeaseLost):
        _WRITES[write](claimed[0], uuid4())
    assert AgentRun.objects.values().get() == before
    assert not AgentStep.objects.exists()


def test_nothing_is_written_to_a_run_that_is_over(claimed: tuple[UUID, UUID]) -> None:
    AgentRun.objects.update(state=_STATE.STOPPED)
    with pytest.raises(records.LeaseLost):
        records.run_drafted(*claimed, "so far")
    records.run_released(*claimed)
    assert AgentRun.objects.get().state == _STATE.STOPPED


def test_only_its_own_worker_gives_a_run_back(claimed: tuple[UUID, UUID]) -> None:
    records.run_drafted(*claimed, "so far")
    records.run_released(claimed[0], uuid4())
    assert AgentRun.objects.get().state == _STATE.RUNNING
    records.run_released(*claimed)
    run = AgentRun.objects.get()
    assert (run.state, run.lease, run.lease_expires_at, run.draft) == (
        _STATE.QUEUED,
        None,
        None,
        "",
    )


def test_the_oldest_run_is_taken_up_first_and_none_twice(host: Controller) -> None:
    first, second = _submitted(host).id, _submitted(host).id
    AgentRun.objects.filter(id=second).update(created_at=timezone.now() - timedelta(hours=1))
    assert _claimed(excluded=[second])[0] == first
    assert _claimed()[0] == second
    assert records.run_claim(_SECONDS) is None


def test_a_run_that_is_asked_for_is_taken_up_and_no_other(host: Controller) -> None:
    other, reserved = _submitted(host).id, _submitted(host, is_reserved=True).id
    assert _claimed(only=reserved)[0] == reserved
    assert records.run_claim(_SECONDS, only=reserved) is None
    assert _claimed()[0] == other


def test_a_lost_worker_counts_and_a_new_step_forgets_it(host: Controller) -> None:
    run_id = _submitted(host).id
    started = None
    for interruptions in range(3):
        claimed = _claimed()
        run = AgentRun.objects.get()
        started = started or run.started_at
        assert (claimed[0], run.interruptions, run.started_at) == (run_id, interruptions, started)
        AgentRun.objects.update(lease_expires_at=timezone.now() - timedelta(hours=1))
    records.step_completed(*claimed, _answered(*claimed, Answer(text="ok")))
    assert AgentRun.objects.get().interruptions == 0


def test_a_run_that_is_given_back_has_lost_no_worker(claimed: tuple[UUID, UUID]) -> None:
    records.run_released(*claimed)
    _claimed()
    assert AgentRun.objects.get().interruptions == 0


def test_a_beat_keeps_the_lease_and_says_when_to_end(claimed: tuple[UUID, UUID]) -> None:
    AgentRun.objects.update(
        lease_expires_at=timezone.now(), max_run_seconds=3.0, stop_requested_by=""
    )
    assert records.run_beat(*claimed, _SECONDS, 2.0) == records.Pulse("", is_out_of_time=False)
    run = AgentRun.objects.get()
    assert run.lease_expires_at is not None
    assert run.lease_expires_at > timezone.now() + timedelta(seconds=_SECONDS / 2)
    services.run_stop(run_id=run.id, actor="ada")
    assert records.run_beat(*claimed, _SECONDS, 1.0) == records.Pulse("ada", is_out_of_time=True)


def test_a_stop_leaves_the_lease_to_the_worker_that_has_it(claimed: tuple[UUID, UUID]) -> None:
    stopped = services.run_stop(run_id=claimed[0], actor="a" * 200)
    assert (stopped.state, stopped.lease) == (_STATE.RUNNING, claimed[1])
    assert stopped.stop_requested_by == "a" * 128


def test_a_run_that_is_asked_to_stop_is_not_parked(claimed: tuple[UUID, UUID]) -> None:
    make_approval(Project.objects.get(), **of_run(claimed[0]))
    AgentRun.objects.update(stop_requested_by="ada")
    assert not records.run_parked(*claimed)
    assert AgentRun.objects.get().state == _STATE.RUNNING


@pytest.mark.parametrize(
    ("answer", "state"), [("pending", _STATE.WAITING), ("approved", _STATE.QUEUED)]
)
def test_a_run_whose_questions_are_answered_meanwhile_goes_on(
    claimed: tuple[UUID, UUID], answer: str, state: str
) -> None:
    make_approval(Project.objects.get(), **of_run(claimed[0]), answer=answer)
    make_approval(Project.objects.get(), **of_run(uuid4()))
    assert records.run_parked(*claimed)
    run = AgentRun.objects.get()
    assert (run.state, run.lease, run.lease_expires_at) == (state, None, None)


def test_an_end_withdraws_the_questions_of_this_run_only(claimed: tuple[UUID, UUID]) -> None:
    own = make_approval(Project.objects.get(), **of_run(claimed[0]))
    other = make_approval(Project.objects.get(), **of_run(uuid4()))
    _ended(*claimed)
    answers = dict(Approval.objects.values_list("id", "answer"))
    assert answers == {own.id: "withdrawn", other.id: "pending"}


@pytest.mark.parametrize("state", [_STATE.FINISHED, _STATE.FAILED])
def test_an_answer_that_ends_its_run_is_complete(claimed: tuple[UUID, UUID], state: str) -> None:
    calls = (Call("1", "finish_task", {"success": True, "summary": "s"}), Call("2", "x", {}))
    _answered(*claimed, Answer(calls=calls))
    _ended(*claimed, state)
    step = AgentStep.objects.get()
    is_finished = state == _STATE.FINISHED
    assert (step.is_complete, len(step.results)) == (is_finished, 2 if is_finished else 0)
    assert [result["is_error"] for result in step.results] == [False] * len(step.results)


def test_the_use_of_every_answer_is_added_up(claimed: tuple[UUID, UUID]) -> None:
    used = Answer(text="ok", input_tokens=3, output_tokens=5, cost_cents=0.5)
    _answered(*claimed, used)
    AgentRun.objects.update(draft="so far", notice="busy", said_next=["go on"])
    _answered(*claimed, used, number=2, is_nudge=True)
    run = AgentRun.objects.get()
    assert (run.input_tokens, run.output_tokens, run.cost_cents) == (6, 10, 1.0)
    assert (run.draft, run.notice, run.said_next, run.nudged_at_step) == ("", "", [], 1)


def test_a_resumed_run_begins_anew_and_keeps_what_it_used(claimed: tuple[UUID, UUID]) -> None:
    _answered(*claimed, Answer(cut_by="the limit", input_tokens=3), is_nudge=True)
    assert AgentRun.objects.get().said_next[0].startswith(judgement.CUT)
    AgentRun.objects.update(interruptions=4, nudged_at_step=1, worked_seconds=2.0)
    _ended(*claimed)
    for actor in ("bob", "ada", "bob"):
        run = services.run_resume(run_id=claimed[0], actor=actor, said="go on", max_steps=9)
        AgentRun.objects.update(state=_STATE.FAILED)
    assert (run.said_next, run.told_by) == (["go on"] * 3, ["ada", "bob"])
    assert (run.stop_reason, run.report, run.is_successful, run.ended_at) == ("", "", None, None)
    assert (run.interruptions, run.nudged_at_step, run.max_steps) == (0, 1, 9)
    assert (run.input_tokens, run.worked_seconds) == (3, 2.0)


def test_a_run_that_is_resumed_without_a_message_was_told_nothing(host: Controller) -> None:
    run_id = _submitted(host).id
    AgentRun.objects.update(state=_STATE.FAILED)
    run = services.run_resume(run_id=run_id, actor="ada", said=" ", is_reserved=True)
    assert (run.said_next, run.told_by, run.is_reserved) == ([], None, True)
