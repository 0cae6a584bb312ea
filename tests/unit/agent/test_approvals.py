"""The row of an approval: the call, its risk and its target."""

from datetime import timedelta
from uuid import uuid4

import pytest
from django.utils import timezone

from agent import services
from agent.models import AgentApproval, AgentRun, AgentStep
from agent.runs import records
from agent.views.rendering import approval_line
from projects.models import CommandSession, Controller, Project
from projects.policy.call_risk import judged

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def run() -> AgentRun:
    project = Project.objects.create(name="acme")
    for name in ("web-1", "web-2"):
        Controller.objects.create(
            project=project, name=name, lease_expires_at=timezone.now() + timedelta(hours=1)
        )
    submitted = services.run_submit(project=project, task="tidy up", actor="test")
    AgentRun.objects.filter(id=submitted.id).update(state=AgentRun.State.RUNNING, lease=uuid4())
    submitted.refresh_from_db()
    return submitted


def _session(run: AgentRun, host: str, command: str, **changes: object) -> CommandSession:
    values = {"command": command, "started_by": f"agent:{run.id}", "state": "RUNNING", **changes}
    return CommandSession.objects.create(
        project=run.project, controller=Controller.objects.get(name=host), **values
    )


def _asked(run: AgentRun, tool: str, **arguments: object) -> AgentApproval:
    step = AgentStep.objects.create(
        run=run,
        number=run.steps.count() + 1,
        calls=[{"id": "1", "name": tool, "arguments": arguments}],
    )
    assert run.lease is not None
    return records.approval_of(
        run, run.lease, step=step, index=0, judgement=judged(tool, arguments)
    )


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
    assert _asked(run, "execute_command", command="rm x").host == ""
    run.controllers = ["web-1"]
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
    assert "1 other active session of this run could change files" in approval_line(asked).text


def test_no_session_of_another_project_is_shown(run: AgentRun) -> None:
    other = Project.objects.create(name="other")
    host = Controller.objects.create(project=other, name="theirs")
    session = CommandSession.objects.create(
        project=other, controller=host, command="secret of others"
    )
    asked = _asked(run, "send_command_input", session_id=str(session.id), input_text="x\n")
    assert (asked.host, asked.session_id, asked.session_command) == ("", None, "")


def test_a_call_is_asked_about_once_and_judged_when_it_was_asked(run: AgentRun) -> None:
    first = _asked(run, "execute_command", command="rm x")
    assert run.lease is not None
    step = AgentStep.objects.get(run=run, number=1)
    again = records.approval_of(
        run, run.lease, step=step, index=0, judgement=judged("execute_command", {"command": "ls"})
    )
    assert (again.pk, again.risk) == (first.pk, "destructive")
