"""The runs of language models."""

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render

from console.parts.access import page


@page("agent.view_agentrun")
def runs(request: HttpRequest) -> HttpResponse:
    """Shows the runs of the person's projects."""
    return render(request, "console/runs.html")
