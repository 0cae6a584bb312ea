"""The list of runs: those of the person's projects, each with a link to its live page."""

from agent.models import AgentRun
from projects.models import Project
from tests.unit.console.conftest import PersonWith, Tenant


def _run(project: Project, **fields: str) -> AgentRun:
    limits = {"max_steps": 1, "max_tokens": 1, "max_cost_cents": 0, "output_bytes": 1}
    return AgentRun.objects.create(
        project=project,
        task=f"task-of-{project}",
        model="scripted:demo",
        max_run_seconds=1.0,
        **limits,
        **fields,
    )


def test_a_run_that_waits_comes_first_and_others_stay_hidden(
    person_with: PersonWith, ours: Tenant, theirs: Tenant
) -> None:
    run = _run(ours.project, state="waiting")
    _run(theirs.project)
    text = person_with("view_agentrun").get("/runs/").text
    assert "Wait for a person" in text
    assert f"/runs/{run.pk}/" in text
    assert "task-of-theirs" not in text
