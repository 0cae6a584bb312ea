"""The header of every page: the person, and where they may go."""

from typing import Any, Final

from django.db.models import QuerySet
from django.http import HttpRequest
from django.urls import reverse

from console.parts import access
from console.parts.browser_files import MISSING, has_terminal
from projects.admin.parts.access import projects_of, sees_every_project
from projects.models import Approval
from projects.storage import clock

# Name of the page, its title, the key that leads there after ``g``, the right that it needs.
_PAGES: Final = (
    ("now", "Now", "n", access.SEE_SESSIONS),
    ("attention", "Waiting", "w", access.SEE_SESSIONS),
    ("hosts", "Hosts", "h", access.SEE_HOSTS),
    ("approvals", "Approvals", "a", access.SEE_APPROVALS),
    ("runs", "Runs", "r", access.SEE_RUNS),
    ("search", "Search", "s", access.SEE_SCREENS),
    ("timeline", "Timeline", "t", access.SEE_EVENTS),
)

_NO_PROJECT: Final = (
    "You are a member of no project, so every list is empty. An administrator adds members."
)


def header(request: HttpRequest) -> dict[str, Any]:
    """The context that the base template needs, for every page with a person."""
    if not hasattr(request, "user") or not access.is_staff(request):
        return {}
    return {
        "is_signed_in": True,
        "places": [
            {
                "name": name,
                "title": title,
                "key": key,
                "address": reverse(f"console:{name}"),
                "count": open_approvals_of(request).count() if name == "approvals" else 0,
            }
            for name, title, key, right in _PAGES
            if request.user.has_perm(right)
        ],
        "notes": _notes(request),
    }


def _notes(request: HttpRequest) -> list[str]:
    """The notes that the person is shown on every page."""
    is_outsider = not (sees_every_project(request) or projects_of(request).exists())
    found = [_NO_PROJECT] if is_outsider else []
    return found if has_terminal() else [*found, MISSING]


def open_approvals_of(request: HttpRequest) -> QuerySet[Approval]:
    """The calls that wait for a person in the person's projects."""
    rows = Approval.objects.filter(project__in=projects_of(request))
    open_rows = rows.filter(answer=Approval.Answer.PENDING)
    return open_rows.exclude(expires_at__lte=clock.approvals_now())
