"""One run of a model, live: what it says and does, its approvals, and buttons to control it."""

from collections.abc import Callable
from hashlib import sha256
from typing import Any, Final
from uuid import UUID

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.views.decorators.http import require_POST

from agent import services
from agent.models import AgentRun
from agent.runs.records import approvals_of
from agent.views.rendering import approval_line, sessions_of, used_line, whole_run
from console.parts.access import ANSWER, SEE_APPROVALS, SEE_RUNS, page
from console.parts.looks import audit_run_look, ensure_run_look
from projects.admin.parts.access import actor_of, projects_of
from projects.admin.parts.display import shortened, visible
from projects.errors.base import ControllerActionError
from projects.models import Approval, CommandSession

CONTROL: Final = "agent.control_run"
READ: Final = "agent.view_run_transcript"


@page(SEE_RUNS)
def run(request: HttpRequest, run_id: UUID) -> HttpResponse:
    """Shows one run. Reading its transcript leaves an audit row."""
    found = _run(request, run_id)
    if request.user.has_perm(READ):
        audit_run_look(request, found)
    return render(request, "console/run.html", _shown(request, found))


@page(SEE_RUNS)
def run_live(request: HttpRequest, run_id: UUID) -> HttpResponse:
    """The part of the page that changes; 204 if the page has this version already."""
    found = _run(request, run_id)
    if request.user.has_perm(READ):
        ensure_run_look(request, found)
    shown = _shown(request, found)
    if request.GET.get("have") == shown["version"]:
        return HttpResponse(status=204)
    return render(request, "console/run_live.html", shown)


@page(SEE_RUNS, CONTROL)
@require_POST
def run_stop(request: HttpRequest, run_id: UUID) -> HttpResponse:
    """Stops the run, whoever works on it."""
    return _acted(
        request,
        run_id,
        lambda found: services.run_stop(run_id=found.pk, actor=actor_of(request)),
        "The run is being stopped.",
    )


@page(SEE_RUNS, CONTROL)
@require_POST
def run_resume(request: HttpRequest, run_id: UUID) -> HttpResponse:
    """Resumes a run that is over, with the message to the model from the form."""
    said = request.POST.get("said", "")
    return _acted(
        request,
        run_id,
        lambda found: services.run_resume(run_id=found.pk, actor=actor_of(request), said=said),
        "The run resumes.",
    )


def _acted(
    request: HttpRequest, run_id: UUID, act: Callable[[AgentRun], object], done: str
) -> HttpResponse:
    found = _run(request, run_id)
    try:
        act(found)
        messages.success(request, done)
    except ControllerActionError as error:
        messages.error(request, error.line())
    return redirect("console:run", found.pk)


def _run(request: HttpRequest, run_id: UUID) -> AgentRun:
    """The run. A run of another project does not exist."""
    rows = AgentRun.objects.filter(project__in=projects_of(request)).select_related("project")
    return get_object_or_404(rows, pk=run_id)


def _shown(request: HttpRequest, found: AgentRun) -> dict[str, Any]:
    approvals = list(approvals_of(found.pk))
    may_answer = request.user.has_perms((SEE_APPROVALS, ANSWER))
    pending = [one for one in approvals if may_answer and one.answer == Approval.Answer.PENDING]
    steps = list(found.steps.order_by("number"))
    may_read = request.user.has_perm(READ)
    lines = list(whole_run(found, steps, approvals)) if may_read else []
    of_project = CommandSession.objects.filter(project=found.project)
    sessions = of_project.filter(pk__in=sessions_of(steps)).order_by("created_at")
    used = used_line(found, steps=len(steps))
    state = repr((found.state, used, [one.pk for one in pending], sessions_of(steps), lines))
    task = visible(found.task, keep="\n")
    return {
        "run": found,
        "task": task,
        "is_long": task != shortened(found.task),
        "used": used,
        "may_read": may_read,
        "may_control": request.user.has_perm(CONTROL),
        "is_over": found.state in services.OVER,
        "lines": lines,
        "sessions": sessions.select_related("controller"),
        "pending": [(one, approval_line(one).text) for one in pending],
        "version": sha256(state.encode()).hexdigest()[:16],
    }
