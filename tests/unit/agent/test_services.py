"""Runs are submitted, stopped and resumed, and people are told of each end."""

from collections.abc import Callable
from datetime import timedelta
from uuid import UUID, uuid4

import pytest
from django.db import DatabaseError, transaction
from django.utils import timezone

from agent import services
from agent.llm.conversation import Answer
from agent.models import AgentRun
from agent.runs import records
from projects.errors.calls import InvalidArgument
from projects.models import AttentionEvent, Controller
from tests.support.rows import make_controller
from tests.support.running.append_only import no_audit_rows

pytestmark = pytest.mark.django_db
LEASE_SECONDS = 30.0
_STATE = AgentRun.State


@pytest.fixture
def host() -> Controller:
    online = timezone.now() + timedelta(seconds=LEASE_SECONDS)
    made = make_controller(lease_expires_at=online)
    made.project.attention_seconds = {"run_ended": 0}
    made.project.save()
    return made


@pytest.fixture
def run(host: Controller) -> AgentRun:
    return services.run_submit(project=host.project, task="tidy up", actor="test")


def _worked_to_its_end(run: AgentRun) -> None:
    claimed = records.run_claim(LEASE_SECONDS)
    assert claimed is not None
    records.run_ended(
        *claimed, _STATE.FAILED, stop_reason="max_steps", report="", is_successful=None
    )


def _told() -> list[tuple[str, str]]:
    events = AttentionEvent.objects.filter(kind="run_ended").order_by("raised_at")
    return [(event.path, event.detail["state"]) for event in events]


def test_every_end_of_a_run_that_is_resumed_is_told(run: AgentRun) -> None:
    _worked_to_its_end(run)
    services.run_resume(run_id=run.id, actor="test")
    _worked_to_its_end(run)
    services.run_resume(run_id=run.id, actor="test")
    services.run_stop(run_id=run.id, actor="test")
    page = f"/runs/{run.id}/"
    assert _told() == [(page, "failed"), (page, "failed"), (page, "stopped")]


@pytest.mark.parametrize("state", [_STATE.QUEUED, _STATE.WAITING, _STATE.RUNNING])
def test_a_stop_without_a_worker_is_told_once(run: AgentRun, state: str) -> None:
    """A run whose worker is lost says that it is running."""
    AgentRun.objects.update(state=state)
    for _ in range(2):
        services.run_stop(run_id=run.id, actor="test")
    assert [end for _page, end in _told()] == ["stopped"]


def test_a_stop_of_a_run_at_work_is_told_when_its_worker_ends_it(run: AgentRun) -> None:
    claimed = records.run_claim(LEASE_SECONDS)
    assert claimed is not None
    services.run_stop(run_id=run.id, actor="test")
    assert _told() == []
    records.run_ended(
        *claimed, _STATE.STOPPED, stop_reason="stopped", report="", is_successful=None
    )
    assert [end for _page, end in _told()] == ["stopped"]


def test_a_killed_worker_of_a_reserved_run_leaves_it_to_be_stopped(run: AgentRun) -> None:
    AgentRun.objects.update(is_reserved=True)
    assert records.run_claim(LEASE_SECONDS, only=run.id) is not None
    services.run_stop(run_id=run.id, actor="test")
    AgentRun.objects.update(lease_expires_at=timezone.now() - timedelta(hours=1))
    assert records.run_claim(LEASE_SECONDS) is not None


def test_a_killed_worker_of_a_reserved_run_leaves_it_to_its_owner(run: AgentRun) -> None:
    AgentRun.objects.update(is_reserved=True)
    assert records.run_claim(LEASE_SECONDS, only=run.id) is not None
    AgentRun.objects.update(lease_expires_at=timezone.now() - timedelta(hours=1))
    assert records.run_claim(LEASE_SECONDS) is None


def test_each_form_that_is_sent_again_is_one_run(host: Controller) -> None:
    under = uuid4()

    def sent(task: str) -> UUID:
        submitted = {"project": host.project, "task": task, "actor": "test", "run_id": under}
        return services.run_submit(**submitted).id

    assert [sent("tidy up"), sent("tidy up")] == [under] * 2
    changed = {sent("sweep"), sent("sweep")}
    assert len(changed) == 1
    assert AgentRun.objects.count() == 2


def _resumed(run: AgentRun, said: str) -> list[str]:
    services.run_stop(run_id=run.id, actor="test")
    return list(services.run_resume(run_id=run.id, actor="test", said=said).said_next)


def test_a_message_waits_for_the_model_over_another_resumption(run: AgentRun) -> None:
    assert _resumed(run, "use git") == ["use git"]
    assert _resumed(run, " ") == ["use git"]
    assert _resumed(run, "not svn") == ["use git", "not svn"]
    claimed = records.run_claim(LEASE_SECONDS)
    assert claimed is not None
    records.step_answered(
        *claimed, number=1, said_before=(), is_nudge=False, answer=Answer(text="ok"), hidden=()
    )
    records.run_released(*claimed)
    assert _resumed(run, "go on") == ["go on"]


def test_unread_messages_are_together_as_long_as_one_may_be(run: AgentRun) -> None:
    _resumed(run, "x" * (services.MOST_TASK_CHARS - 3))
    with pytest.raises(InvalidArgument, match="said: must have at most 3 characters"):
        _resumed(run, "four")
    assert len(_resumed(run, "yes")) == 2


@pytest.mark.parametrize(
    ("problem", "fields"),
    [
        ("task: contains a NUL or a lone surrogate", {"task": "tidy\0"}),
        ("task: contains a NUL or a lone surrogate", {"task": "tidy \udcff"}),
        ("model: contains a NUL or a lone surrogate", {"model": "openai:\0"}),
        ("model: must have at most 128 characters", {"model": "openai:" + "x" * 122}),
    ],
)
def test_a_run_that_no_row_can_hold_is_refused(
    host: Controller, problem: str, fields: dict[str, str]
) -> None:
    with pytest.raises(InvalidArgument, match=problem):
        services.run_submit(**{"project": host.project, "task": "tidy", "actor": "me", **fields})
    assert not AgentRun.objects.exists()


def test_a_message_that_no_row_can_hold_is_refused(run: AgentRun) -> None:
    for odd in ("go\0", "go \ud800"):
        with pytest.raises(InvalidArgument, match="said: contains a NUL or a lone surrogate"):
            _resumed(run, odd)


def test_the_longest_name_of_a_model_fits(host: Controller) -> None:
    name = "openai:" + "x" * (services.MOST_MODEL_CHARS - 7)
    run = services.run_submit(project=host.project, task="tidy", actor="a" * 200, model=name)
    assert AgentRun.objects.get(id=run.id).model == name


@pytest.mark.sqlite
def test_no_run_begins_stops_or_goes_on_without_its_audit_row(run: AgentRun) -> None:
    host = Controller.objects.get()
    ended = services.run_submit(project=host.project, task="tidy up", actor="test")
    services.run_stop(run_id=ended.id, actor="test")
    acts: list[Callable[[], object]] = [
        lambda: services.run_submit(project=host.project, task="more", actor="test"),
        lambda: services.run_stop(run_id=run.id, actor="test"),
        lambda: services.run_resume(run_id=ended.id, actor="test", said="go on"),
    ]
    before = _runs()
    with no_audit_rows():
        for act in acts:
            with pytest.raises(DatabaseError), transaction.atomic():
                act()
    assert _runs() == before
    for act in acts:
        act()
        assert _runs() != before
        before = _runs()


def _runs() -> list[dict[str, object]]:
    return list(AgentRun.objects.order_by("created_at", "id").values())
