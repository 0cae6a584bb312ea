"""The audit log, for people."""

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render

from console.parts.access import SEE_EVENTS, page


@page(SEE_EVENTS)
def timeline(request: HttpRequest) -> HttpResponse:
    """Shows the audit events that the person may see."""
    return render(request, "console/timeline.html")
