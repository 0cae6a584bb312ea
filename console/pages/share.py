"""Links that lead a person, once logged in, straight to a session or to a moment of it."""

import re
from typing import Final
from uuid import UUID

from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect

from console.parts.access import SEE_SCREENS, page, session_or_404

_MOMENT: Final = re.compile(r"[0-9A-Za-z:.+-]{1,40}")


@page(SEE_SCREENS)
def share(request: HttpRequest, session_id: UUID) -> HttpResponse:
    """Leads to the session, or with ``?t=14:03:07`` to that moment of its replay.

    The moment is in the query, because a fragment does not survive the login page.
    """
    session = session_or_404(request, session_id)
    at = request.GET.get("t", "")
    if not _MOMENT.fullmatch(at):
        return redirect("console:session", session.pk)
    answer = redirect("console:replay", session.pk)
    answer["Location"] += f"#t={at}"
    return answer
