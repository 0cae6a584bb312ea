"""The board: all active sessions."""

from typing import Final

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render

from console.parts.access import SEE_SESSIONS, page

_GROUPS: Final = (
    ("person", "Needs a person"),
    ("agent", "Waits for its agent"),
    ("works", "Works"),
    ("away", "Host away"),
)
_WAITS: Final = (
    ("secret", "a secret"),
    ("approval", "an approval"),
    ("taken", "an operator (taken over)"),
    ("line", "a line"),
    ("key", "a key"),
    ("screen", "a key on its screen"),
    ("shell", "a shell command"),
)
_SPANS: Final = (
    ("1m", "a minute or more"),
    ("5m", "5 minutes or more"),
    ("30m", "half an hour or more"),
    ("2h", "2 hours or more"),
)


@page(SEE_SESSIONS)
def now(request: HttpRequest) -> HttpResponse:
    """Shows the active sessions of the person's projects. The rows come over the socket."""
    context = {"groups": _GROUPS, "waits": _WAITS, "spans": _SPANS}
    return render(request, "console/now.html", context)
