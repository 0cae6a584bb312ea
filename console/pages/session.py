"""The page of one session, live, with its keyboard."""

from uuid import UUID

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render

from console.parts.access import SEE_SCREENS, TYPE, page, session_or_404
from console.parts.browser_files import has_terminal
from projects.admin.parts.access import actor_of
from projects.admin.parts.display import shortened


@page(SEE_SCREENS)
def session(request: HttpRequest, session_id: UUID) -> HttpResponse:
    """Shows one session. A session of another project does not exist.

    The screen comes over the socket, which puts the look on record.
    """
    found = session_or_404(request, session_id)
    context = {
        "session": found,
        "command": shortened(found.command, 200),
        "started_by": shortened(found.started_by),
        "actor": actor_of(request),
        "may_type": request.user.has_perm(TYPE),
        "has_terminal": has_terminal(),
    }
    return render(request, "console/session.html", context)
