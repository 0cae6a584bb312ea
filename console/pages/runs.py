"""The runs of language models, those that wait for a person first."""

from typing import Final

from django.db.models import Count, Q
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render

from agent.models import AgentApproval, AgentRun
from console.parts.access import SEE_RUNS, page
from projects.admin.parts.access import projects_of

_MOST: Final = 100


@page(SEE_RUNS)
def runs(request: HttpRequest) -> HttpResponse:
    """Shows the runs of the person's projects. Each leads to its live page."""
    pending = Q(approval_requests__answer=AgentApproval.Answer.PENDING)
    rows = AgentRun.objects.filter(project__in=projects_of(request)).select_related("project")
    newest = rows.order_by("-created_at")[:_MOST]
    waiting = rows.filter(state=AgentRun.State.WAITING).annotate(
        pending=Count("approval_requests", filter=pending)
    )
    return render(request, "console/runs.html", {"waiting": waiting, "runs": newest})
