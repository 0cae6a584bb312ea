"""Runs that would do nothing, cost too much or ask less than they have to are not submitted."""

from datetime import timedelta
from typing import Any
from uuid import uuid4

import pytest
from django.utils import timezone

from agent import services
from agent.errors import RunActive, RunNotFound
from agent.models import AgentRun
from projects.errors.base import ControllerActionError
from projects.errors.calls import InvalidArgument
from projects.errors.hosts import ControllerOffline, NoControllerEnrolled
from projects.models import AuditEvent, Controller, Project
from tests.support.rows import make_controller

pytestmark = pytest.mark.django_db


@pytest.fixture
def host() -> Controller:
    return make_controller("web1", lease_expires_at=timezone.now() + timedelta(minutes=5))


def _submitted(project: Project, **fields: Any) -> AgentRun:
    return services.run_submit(
        **{"project": project, "task": "tidy", "actor": "test", "model": "scripted:demo", **fields}
    )


@pytest.mark.parametrize(
    ("fields", "refusal"),
    [
        ({"revoked_at": timezone.now()}, NoControllerEnrolled),
        ({"lease_expires_at": None}, ControllerOffline),
        ({"lease_expires_at": timezone.now() - timedelta(hours=1)}, ControllerOffline),
    ],
)
def test_a_run_needs_a_host_that_could_carry_out_a_call(
    host: Controller, fields: dict[str, Any], refusal: type[ControllerActionError]
) -> None:
    Controller.objects.update(**fields)
    with pytest.raises(refusal):
        _submitted(host.project)
    assert not AgentRun.objects.exists()


def test_a_host_that_the_run_may_not_use_is_none_to_it(host: Controller) -> None:
    make_controller("web2", project=host.project)
    assert _submitted(host.project).state == "queued"
    assert _submitted(host.project, controllers=["web2", "web1"]).state == "queued"
    with pytest.raises(ControllerOffline, match="web2"):
        _submitted(host.project, controllers=["web2"])


def test_a_host_of_another_project_is_unknown_to_a_run(host: Controller) -> None:
    make_controller("db1", lease_expires_at=host.lease_expires_at)
    with pytest.raises(InvalidArgument, match="no controller 'db1' in this project") as refused:
        _submitted(host.project, controllers=["web1", "db1"])
    assert "there are: web1" in str(refused.value)
    assert "'web1'" not in str(refused.value)


@pytest.mark.parametrize(
    ("own", "of_runs", "wanted", "is_accepted"),
    [
        ("auto", "auto", "auto", True),
        ("auto", "ask-risky", "auto", False),
        ("ask-risky", "auto", "auto", False),
        ("auto", "ask-risky", "ask-risky", True),
        ("auto", "ask-risky", "ask-all", True),
        ("ask-all", "auto", "ask-risky", False),
        ("auto", "auto", "never", False),
    ],
)
def test_a_run_can_only_be_stricter_than_its_project(
    host: Controller, own: str, of_runs: str, wanted: str, is_accepted: bool
) -> None:
    Project.objects.update(approvals=own, run_approvals=of_runs)
    project = Project.objects.get(id=host.project_id)
    if is_accepted:
        assert _submitted(project, approvals=wanted).approvals == wanted
        return
    with pytest.raises(InvalidArgument, match="approvals: "):
        _submitted(project, approvals=wanted)


@pytest.mark.parametrize(
    ("limit", "refused", "accepted"),
    [
        ("max_steps", (0, -1, 2**31), (1, 2**31 - 1)),
        ("max_tokens", (0, 2**31), (1, 2**31 - 1)),
        ("max_cost_cents", (-1, 2**31), (0, 2**31 - 1)),
        ("max_run_seconds", (0.0, 2.0**31), (0.001, 1.0)),
        ("output_bytes", (0, 2**31), (1, 2**31 - 1)),
    ],
)
def test_a_limit_is_what_its_column_can_hold(
    host: Controller, limit: str, refused: tuple[float, ...], accepted: tuple[float, ...]
) -> None:
    for value in refused:
        with pytest.raises(InvalidArgument, match=f"{limit}: must be"):
            _submitted(host.project, **{limit: value})
    for value in accepted:
        run = _submitted(host.project, **{limit: value})
        assert getattr(AgentRun.objects.get(id=run.id), limit) == value


def test_a_limit_that_is_left_out_is_that_of_the_settings(host: Controller) -> None:
    run = _submitted(host.project, max_steps=None, max_tokens=7)
    assert (run.max_steps, run.max_tokens) == (services.conf.max_steps, 7)


@pytest.mark.parametrize("task", ["", " \n", "x" * (services.MOST_TASK_CHARS + 1)])
def test_a_run_needs_a_task_that_a_model_can_read(host: Controller, task: str) -> None:
    with pytest.raises(InvalidArgument, match="task: must have 1 to"):
        _submitted(host.project, task=task)
    assert _submitted(host.project, task="x" * services.MOST_TASK_CHARS).state == "queued"


def test_every_problem_is_told_at_once(host: Controller) -> None:
    with pytest.raises(InvalidArgument) as refused:
        _submitted(host.project, task="", max_steps=0, controllers=["nix"], approvals="never")
    for name in ("task", "max_steps", "controllers", "approvals"):
        assert f"{name}: " in str(refused.value)


def test_a_run_that_nobody_knows_is_neither_stopped_nor_resumed() -> None:
    for act in (services.run_stop, services.run_resume):
        with pytest.raises(RunNotFound):
            act(run_id=uuid4(), actor="test")


@pytest.mark.parametrize("state", ["queued", "running", "waiting"])
def test_a_run_that_is_not_over_is_not_resumed(host: Controller, state: str) -> None:
    run = _submitted(host.project)
    AgentRun.objects.update(state=state)
    with pytest.raises(RunActive):
        services.run_resume(run_id=run.id, actor="test", said="go on")
    assert AgentRun.objects.get().said_next == []


@pytest.mark.parametrize("state", ["finished", "failed", "stopped"])
def test_a_stop_leaves_a_run_that_is_over_as_it_is(host: Controller, state: str) -> None:
    run = _submitted(host.project)
    AgentRun.objects.update(state=state, stop_reason="done", report="tidied")
    rows = AuditEvent.objects.count()
    stopped = services.run_stop(run_id=run.id, actor="test")
    assert (stopped.state, stopped.stop_reason, stopped.report) == (state, "done", "tidied")
    assert (stopped.stop_requested_by, AuditEvent.objects.count()) == ("", rows)
