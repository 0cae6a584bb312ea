"""The board: all active sessions."""

from typing import Final

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render

from console.parts.access import SEE_SESSIONS, page, sessions_of
from console.parts.words import WAITS
from projects.sessions.selectors import ACTIVE

_GROUPS: Final = (
    ("person", "Needs a person"),
    ("agent", "Waits for its agent"),
    ("works", "Works"),
    ("away", "Host away"),
)
_FILTERS: Final = ("q", "waits", "host", "since")
_MOST_HOSTS: Final = 1000
_SPANS: Final = {
    "1m": "a minute or more",
    "5m": "5 minutes or more",
    "30m": "half an hour or more",
    "2h": "2 hours or more",
}


@page(SEE_SESSIONS, filters=_FILTERS)
def now(request: HttpRequest) -> HttpResponse:
    """Shows the active sessions of the person's projects. The rows come over the socket."""
    active = sessions_of(request).filter(state__in=ACTIVE)
    names = active.values_list("controller__name", flat=True).order_by("controller__name")
    hosts = {name: name for name in names.distinct()[:_MOST_HOSTS]}
    choices = (
        ("waits", "Waits for", WAITS),
        ("host", "Host", hosts),
        ("since", "Silent for", _SPANS),
    )
    chosen = {name: request.GET.get(name, "") for name in _FILTERS}
    own = {name: {value: value} if value else {} for name, value in chosen.items()}
    # What the address names stays chosen, also if nothing is there for it now.
    filters = [
        (name, title, {**own[name], **options}, chosen[name]) for name, title, options in choices
    ]
    context = {"groups": _GROUPS, "filters": filters, "chosen": chosen}
    return render(request, "console/now.html", context)
