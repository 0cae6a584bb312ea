"""The page of one session, live, with its keyboard."""

from datetime import datetime
from typing import Final, NamedTuple
from uuid import UUID

from asgiref.sync import async_to_sync
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse, HttpResponseBadRequest
from django.shortcuts import render

from console.parts.access import SEE_APPROVALS, SEE_SCREENS, TYPE, page, session_or_404
from console.parts.browser_files import has_terminal
from console.parts.header import open_approvals_of
from console.parts.looks import ensure_look, screen_text
from projects.admin.parts.access import actor_of
from projects.admin.parts.display import shortened
from projects.models import (
    ActionRequest,
    Approval,
    AttentionEvent,
    AttentionKind,
    CommandSession,
    SessionEvent,
)
from projects.output.recording.labels import label_of
from projects.secrets.masks import secret_mask
from projects.storage.access import at_length

MAX_EVENTS: Final = 200
_MOST_ASKED: Final = 20
_MOST: Final = 2**62


@page(SEE_SCREENS)
def session(request: HttpRequest, session_id: UUID) -> HttpResponse:
    """Shows one session. A session of another project does not exist.

    The screen comes over the socket, which puts the look on record. Without a terminal emulator the
    page has the screen as text.
    """
    found = session_or_404(request, session_id)
    if not has_terminal():
        ensure_look(request, found, "text")
    context = {
        "session": found,
        "command": shortened(found.command, 200),
        "started_by": shortened(found.started_by),
        "actor": actor_of(request),
        "may_type": request.user.has_perm(TYPE),
        "has_terminal": has_terminal(),
        "text": "" if has_terminal() else screen_text(found),
        "wanted": _wanted(found) if request.user.has_perm(TYPE) else "",
    }
    if request.user.has_perm(SEE_APPROVALS):
        context["asked"] = open_approvals_of(request).filter(session_id=found.pk)[:_MOST_ASKED]
        context["answered"] = _answered(found)
    return render(request, "console/session.html", context)


def _wanted(found: CommandSession) -> str:
    """The words of a caller that asks a person for a secret; empty if none does."""
    asked = AttentionEvent.objects.filter(
        session=found, kind=AttentionKind.SECRET_WANTED, resolved_at__isnull=True
    )
    return asked.exclude(wanted="").values_list("wanted", flat=True).first() or ""


def _answered(found: CommandSession) -> QuerySet[Approval]:
    """The approvals of the session's start and of what was done to it, newest first."""
    done = ActionRequest.objects.filter(session=found).values("request_id")
    rows = Approval.objects.filter(project_id=found.project_id, request_id__in=done)
    return rows.exclude(answered_at=None).order_by("-id")[:_MOST_ASKED]


class Told(NamedTuple):
    """An event in one line. ``at`` is the time by the clock of the host, if that is known."""

    seq: int
    at: datetime
    kind: str
    label: str


@page(SEE_SCREENS)
def events(request: HttpRequest, session_id: UUID) -> HttpResponse:
    """Answers the newest events after the number ``after``, the newest first."""
    found = session_or_404(request, session_id)
    after = request.GET.get("after", "0")
    if not (after.isascii() and after.isdigit()):
        return HttpResponseBadRequest("after is a number")
    ensure_look(request, found, "events")
    told = async_to_sync(at_length)(_events, found.pk, min(int(after[:20]), _MOST))
    answer = render(request, "console/events.html", {"session_id": found.pk, "events": told})
    answer["Cache-Control"] = "no-store"
    return answer


def _events(session_id: UUID, after: int) -> list[Told]:
    rows = SessionEvent.objects.filter(session_id=session_id, seq__gt=after).order_by("-seq")
    mask = secret_mask(session_id)
    return [
        Told(event.seq, event.host_time or event.created_at, event.kind, mask.masked(label))
        for event in rows[:MAX_EVENTS]
        if (label := label_of(event)) is not None
    ]
