"""The board: all active sessions."""

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render

from console.parts.access import SEE_SESSIONS, page


@page(SEE_SESSIONS)
def now(request: HttpRequest) -> HttpResponse:
    """Shows the active sessions of the person's projects."""
    return render(request, "console/now.html")
