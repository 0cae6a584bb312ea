"""The row of an approval: the call, its risk and its target."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from datetime import timedelta
from typing import Any
from uuid import uuid4

import pytest
from django.db import connection, transaction
from django.utils import timezone

from agent import services
from agent.models import AgentRun, AgentStep
from agent.runs import records
from agent.runs.asking import policy_of, question_of
from agent.runs.runner import AgentRunner
from agent.runs.toolbox import Toolbox
from agent.views.rendering import approval_line
from projects.errors.access import OwnCall
from projects.errors.hosts import ControllerAmbiguous
from projects.errors.sessions import SessionNotFound
from projects.models import Approval, CommandSession, Controller, Project
from projects.sessions.approvals.answering import approval_answer
from projects.storage.access import in_database
from projects.tools.base import ToolOutcome
from tests.support.databases.locks import waits_for_a_lock
from tests.support.waiting import wait_until

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def run() -> AgentRun:
    project = Project.objects.create(name="acme")
    for name in ("web-1", "web-2"):
        Controller.objects.create(
            project=project, name=name, lease_expires_at=timezone.now() + timedelta(hours=1)
        )
    submitted = services.run_submit(
        project=project, task="tidy up", actor="test", model="scripted:other"
    )
    AgentRun.objects.filter(id=submitted.id).update(state=AgentRun.State.RUNNING, lease=uuid4())
    submitted.refresh_from_db()
    return submitted


def _session(run: AgentRun, host: str, command: str, **changes: object) -> CommandSession:
    values = {"command": command, "started_by": f"agent:{run.id}", "state": "RUNNING", **changes}
    return CommandSession.objects.create(
        project=run.project, controller=Controller.objects.get(name=host), **values
    )


def _asked(run: AgentRun, tool: str, **arguments: object) -> Approval:
    AgentStep.objects.create(
        run=run,
        number=run.steps.count() + 1,
        calls=[{"id": "1", "name": tool, "arguments": arguments}],
    )
    return _asked_again(run)


def _asked_again(run: AgentRun) -> Approval:
    toolbox = Toolbox(run.id, run.project_id, tuple(run.controllers), run.output_bytes)
    question = question_of(run, list(run.steps.all()), 0, toolbox, set())
    assert question is not None
    assert run.lease is not None
    asked = records.approval_of(run.id, run.lease, question)
    assert asked is not None
    return Approval.objects.get(id=asked.id)


@pytest.mark.parametrize(
    "arguments", [{"input_text": "rm x\n"}, {"terminate": True}, {"keys": ["ctrl-c"]}]
)
def test_an_approval_shows_the_session_and_host_it_goes_to(
    run: AgentRun, arguments: dict[str, object]
) -> None:
    session = _session(run, "web-2", "bash -i")
    asked = _asked(run, "send_command_input", session_id=str(session.id), **arguments)
    assert (asked.host, asked.session_id, asked.session_command, asked.live_programs) == (
        "web-2",
        session.id,
        "bash -i",
        0,
    )
    assert f"[on web-2; in session {session.id} of 'bash -i']" in approval_line(asked).text


def test_an_approval_of_a_background_sessions_end_shows_it_too(run: AgentRun) -> None:
    session = _session(run, "web-1", "sleep 9", kind="background")
    assert _asked(run, "stop_command", sessionId=str(session.id), signal="SIGHUP").host == "web-1"


def test_an_approval_of_a_start_shows_the_host_it_names(run: AgentRun) -> None:
    assert _asked(run, "execute_command", command="rm x", controller="web-2").host == "web-2"
    with pytest.raises(ControllerAmbiguous):
        _asked(run, "execute_command", command="rm x")
    run.controllers = ["web-1"]
    run.save()
    assert _asked(run, "execute_command", command="rm x").host == "web-1"


def test_an_approval_warns_of_programs_that_could_change_what_it_names(run: AgentRun) -> None:
    target = _session(run, "web-1", "bash")
    _session(run, "web-1", "sleep 3; cp evil deploy.sh")
    _session(run, "web-1", "over", state="EXITED", ended_at=timezone.now())
    _session(run, "web-1", "another run's", started_by="agent:other")
    asked = _asked(
        run, "send_command_input", session_id=str(target.id), input_text="sh deploy.sh\n"
    )
    assert asked.live_programs == 1
    assert "1 other active session of this caller could change files" in approval_line(asked).text


def test_no_session_of_another_project_is_asked_about(run: AgentRun) -> None:
    other = Project.objects.create(name="other")
    host = Controller.objects.create(project=other, name="theirs")
    session = CommandSession.objects.create(
        project=other, controller=host, command="secret of others"
    )
    with pytest.raises(SessionNotFound):
        _asked(run, "send_command_input", session_id=str(session.id), input_text="x\n")


def test_a_call_is_asked_about_once(run: AgentRun) -> None:
    first = _asked(run, "execute_command", command="rm x", controller="web-1")
    again = _asked_again(run)
    assert (again.pk, again.risk, again.place) == (first.pk, "destructive", (1, 0))


@pytest.mark.parametrize(
    ("project", "of_runs", "setting", "own", "holds"),
    [
        ("auto", "", "ask-risky", "ask-risky", "ask-risky"),
        ("auto", "ask-all", "ask-risky", "ask-risky", "ask-all"),
        ("auto", "", "ask-all", "ask-risky", "ask-all"),
        ("ask-all", "auto", "auto", "auto", "ask-all"),
        ("auto", "auto", "ask-all", "ask-risky", "ask-risky"),
    ],
)
def test_a_stricter_policy_holds_in_runs_that_were_submitted_before(
    run: AgentRun, settings: Any, project: str, of_runs: str, setting: str, own: str, holds: str
) -> None:
    AgentRun.objects.update(approvals=own)
    Project.objects.update(approvals=project, run_approvals=of_runs)
    settings.AGENT_APPROVALS = setting
    loaded, _ = records.run_loaded(run.id)
    assert policy_of(loaded) == holds


async def test_each_call_of_a_run_goes_by_the_policy_of_its_moment(
    run: AgentRun, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The policy is raised between two calls of one answer of the model."""
    calls = [
        {"id": str(number), "name": "execute_command", "arguments": {"command": "true"}}
        for number in range(2)
    ]

    def begin() -> None:
        AgentRun.objects.update(controllers=["web-1"], lease_expires_at=timezone.now())
        AgentStep.objects.create(run=run, number=1, calls=calls)

    async def made(*_args: Any, **_fields: Any) -> ToolOutcome:
        await in_database(lambda: Project.objects.update(run_approvals="ask-all"))
        return ToolOutcome({}, is_error=False)

    monkeypatch.setattr(Toolbox, "carry_out", made)
    assert run.lease is not None
    await in_database(begin)
    await AgentRunner(run.id, run.lease).drive()
    steps = await in_database(lambda: list(AgentStep.objects.all()))
    assert [len(step.results) for step in steps] == [1]
    assert (await in_database(Approval.objects.get)).place == (1, 1)


async def test_a_run_that_is_asked_to_stop_ends_and_asks_nobody(
    run: AgentRun, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The request comes at the moment at which a call becomes a question."""
    call = {"id": "1", "name": "execute_command", "arguments": {"command": "rm x"}}
    ask = records.approval_of

    def begin() -> None:
        AgentRun.objects.update(controllers=["web-1"], lease_expires_at=timezone.now())
        AgentStep.objects.create(run=run, number=1, calls=[call])

    def asked(*about: Any) -> Any:
        question = ask(*about)
        AgentRun.objects.update(stop_requested_by="test")
        return question

    monkeypatch.setattr(records, "approval_of", asked)
    assert run.lease is not None
    await in_database(begin)
    await AgentRunner(run.id, run.lease).drive()
    await in_database(run.refresh_from_db)
    assert (run.state, run.report) == (AgentRun.State.STOPPED, "stopped by test")
    assert (await in_database(Approval.objects.get)).answer == Approval.Answer.WITHDRAWN


def test_nobody_answers_for_a_run_that_they_resumed_with_a_message(run: AgentRun) -> None:
    Project.objects.update(wants_four_eyes=True)
    for name, said in (("bob", "run rm x"), ("cy", ""), ("dan", "and rm y")):
        AgentRun.objects.update(state=AgentRun.State.STOPPED)
        services.run_resume(run_id=run.id, actor=f"admin:{name}", said=said)
    AgentRun.objects.update(state=AgentRun.State.RUNNING)
    run.refresh_from_db()
    asked = _asked(run, "execute_command", command="rm x", controller="web-1")
    for own in ("test", "admin:bob", "admin:dan"):
        with pytest.raises(OwnCall):
            approval_answer(approval_id=asked.pk, is_approved=True, actor=own)
    assert approval_answer(approval_id=asked.pk, is_approved=True, actor="admin:cy")


def _end(run: AgentRun) -> None:
    assert run.lease is not None
    state = AgentRun.State.FAILED
    records.run_ended(run.id, run.lease, state, stop_reason="error", report="", is_successful=None)


def _stop(run: AgentRun) -> None:
    services.run_stop(run_id=run.id, actor="ada")


@pytest.mark.parametrize("over", [_end, _stop])
def test_an_answer_waits_for_the_end_of_its_run(
    run: AgentRun, over: Callable[[AgentRun], None]
) -> None:
    session = _session(run, "web-1", "bash")
    asked = _asked(run, "send_command_input", session_id=str(session.id), input_text="rm x\n")

    def answer() -> bool:
        with closing(connection):
            return approval_answer(approval_id=asked.id, is_approved=True, actor="ada")

    def has_come() -> bool:
        # SQLite does not show who waits: there the answer may come after the end.
        return not connection.features.has_select_for_update or waits_for_a_lock()

    with ThreadPoolExecutor(1) as threads:
        with transaction.atomic():
            AgentRun.objects.filter(id=run.id).update(notice="held")
            answering = threads.submit(answer)
            wait_until(has_come, 10, "the answer to wait")
            over(run)
        assert not answering.result()
    asked.refresh_from_db()
    assert asked.answer == Approval.Answer.WITHDRAWN
