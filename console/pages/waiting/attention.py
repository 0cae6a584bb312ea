"""Events that want a person: their list, the page that a message leads to, and the snooze."""

from datetime import timedelta
from typing import Final
from uuid import UUID

from django.contrib import messages
from django.db.models import Q, QuerySet
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_POST

from console.parts.access import CHANGE_PROJECT, SEE_SESSIONS, TYPE, page
from console.parts.shares import fair_share
from projects.admin.parts.access import actor_of, projects_of
from projects.attention.events import attention_snooze
from projects.attention.messages import TooManyWaiting, send_again
from projects.models import AttentionEvent, AttentionMessage
from projects.storage import clock

_MOST: Final = 100
_SNOOZES: Final = ((15, "15 minutes"), (60, "an hour"), (480, "8 hours"))
_LONGEST_MINUTES: Final = 7 * 24 * 60


@page(SEE_SESSIONS, filters=())
def attention(request: HttpRequest) -> HttpResponse:
    """Lists what waits in the person's projects, and what has ended lately."""
    rows = _events_of(request)
    is_open = rows.filter(resolved_at__isnull=True)
    snoozed = Q(snoozed_until__gt=clock.now())
    context = {
        "waiting": fair_share(is_open.exclude(snoozed), "-raised_at", _MOST),
        "snoozed": is_open.filter(snoozed)[:_MOST],
        "ended": rows.filter(resolved_at__isnull=False)[:_MOST],
        "most": _MOST,
        "snoozes": _SNOOZES,
        "may_snooze": request.user.has_perm(TYPE),
        "dead": _dead_letters_of(request)[:_MOST],
    }
    return render(request, "console/attention.html", context)


@page(SEE_SESSIONS)
def attention_event(request: HttpRequest, event_id: UUID) -> HttpResponse:
    """Leads on to the page that the event is about."""
    event = _event_or_404(request, event_id)
    # The path is one of our own, never a URL: a host that it names would be left for.
    is_ours = event.path.startswith("/") and not event.path.startswith("//")
    return redirect(event.path if is_ours else "console:attention")


@page(TYPE)
@require_POST
def snooze(request: HttpRequest, event_id: UUID) -> HttpResponse:
    """Lets the event rest for some minutes."""
    event = _event_or_404(request, event_id)
    text = request.POST.get("minutes", "")
    if not text.isdecimal() or not 0 < len(text) < 6 or not 0 < int(text) <= _LONGEST_MINUTES:
        messages.error(request, "Choose for how long the event rests.")
    elif attention_snooze(event, timedelta(minutes=int(text)), actor=actor_of(request)):
        messages.success(request, "The event rests.")
    else:
        messages.error(request, "The event has ended meanwhile.")
    return redirect("console:attention")


@page(CHANGE_PROJECT)
@require_POST
def send_letter_again(request: HttpRequest, message_id: UUID) -> HttpResponse:
    """Has a dead letter sent again, for another day."""
    letter = _dead_letters_of(request).filter(pk=message_id).first()
    try:
        if letter is None or not send_again(letter, actor=actor_of(request)):
            raise Http404
        messages.success(request, "The message is sent again.")
    except TooManyWaiting as refusal:
        messages.error(request, f"{refusal}.")
    return redirect("console:attention")


def _dead_letters_of(request: HttpRequest) -> QuerySet[AttentionMessage]:
    """The messages that no target has received, for whoever may change their project."""
    if not request.user.has_perm(CHANGE_PROJECT):
        return AttentionMessage.objects.none()
    rows = AttentionMessage.objects.filter(
        dead_at__isnull=False, target__project__in=projects_of(request)
    )
    return rows.select_related("target", "target__project").order_by("-dead_at")


def _events_of(request: HttpRequest) -> QuerySet[AttentionEvent]:
    rows = AttentionEvent.objects.filter(project__in=projects_of(request))
    return rows.select_related("project", "controller", "session")


def _event_or_404(request: HttpRequest, event_id: UUID) -> AttentionEvent:
    if (event := _events_of(request).filter(pk=event_id).first()) is None:
        raise Http404
    return event
