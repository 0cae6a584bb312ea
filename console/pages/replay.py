"""The replay of a session."""

from uuid import UUID

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render

from console.parts.access import SEE_SCREENS, page, session_or_404


@page(SEE_SCREENS)
def replay(request: HttpRequest, session_id: UUID) -> HttpResponse:
    """Shows one session. A session of another project does not exist."""
    found = session_or_404(request, session_id)
    return render(request, "console/replay.html", {"session": found})
