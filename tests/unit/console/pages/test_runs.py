"""The list of runs: those of the person's projects, each with a link to its live page."""

import re
from datetime import timedelta

import pytest
from django.contrib.auth.models import User
from django.utils import timezone

from agent.models import AgentRun
from console.pages import runs
from projects.models import Controller, Project
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


def test_lists_that_are_cut_say_so_and_hide_no_project(
    person_with: PersonWith, ours: Tenant, theirs: Tenant, monkeypatch: pytest.MonkeyPatch
) -> None:
    page = person_with("view_agentrun")
    theirs.project.members.add(User.objects.get())
    waits = [_run(project, state="waiting") for project in (ours.project, *[theirs.project] * 3)]
    assert "newest" not in page.get("/runs/").text
    monkeypatch.setattr(runs, "_MOST", 2)
    text = page.get("/runs/").text
    assert "These are the 2 newest, as many of each project" in text
    assert "These are the 2 newest runs" in text
    assert f"/runs/{waits[0].pk}/" in text.split("Newest")[0]


def test_a_name_of_a_model_that_is_too_long_is_told_at_its_field(
    person_with: PersonWith, ours: Tenant
) -> None:
    fields = {"project": str(ours.project.pk), "task": "tidy", "model": "x" * 200}
    page = person_with("view_agentrun", "control_run").post("/runs/new/", fields)
    assert "at most 128 characters (it has 200)" in page.text
    assert not AgentRun.objects.exists()


def test_a_form_that_is_sent_twice_starts_one_run(person_with: PersonWith, ours: Tenant) -> None:
    Controller.objects.update(lease_expires_at=timezone.now() + timedelta(minutes=5))
    page = person_with("view_agentrun", "control_run")
    (run_id,) = re.findall(r'name="run_id" value="([0-9a-f-]{36})"', page.get("/runs/new/").text)
    form = {"project": str(ours.project.pk), "model": "scripted:demo", "run_id": run_id}
    first, again = (page.post("/runs/new/", {**form, "task": "tidy"}) for _ in range(2))
    assert first["Location"] == again["Location"] == f"/runs/{run_id}/"
    for change in ({"task": "look"}, {"approvals": "ask-all"}, {"max_steps": "3"}):
        other = page.post("/runs/new/", {**form, "task": "tidy", **change})
        assert other["Location"] != first["Location"]
    assert AgentRun.objects.count() == 4
