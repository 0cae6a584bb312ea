"""The row of an approval: the call, its risk and its target."""

from datetime import timedelta
from uuid import uuid4

import pytest
from django.utils import timezone

from agent import services
from agent.models import AgentRun, AgentStep
from agent.runs import records
from agent.runs.asking import question_of
from agent.runs.toolbox import Toolbox
from agent.views.rendering import approval_line
from projects.errors.hosts import ControllerAmbiguous
from projects.errors.sessions import SessionNotFound
from projects.models import Approval, CommandSession, Controller, Project

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
