"""The header of every page: the person, and where they may go."""

from typing import Any, Final

from django.http import HttpRequest
from django.urls import reverse

from console.parts import access
from console.parts.browser_files import MISSING, has_terminal

# Name of the page, its title, the key that leads there after ``g``, the right that it needs.
_PAGES: Final = (
    ("now", "Now", "n", access.SEE_SESSIONS),
    ("hosts", "Hosts", "h", access.SEE_HOSTS),
    ("runs", "Runs", "r", access.SEE_RUNS),
    ("search", "Search", "s", access.SEE_SCREENS),
    ("timeline", "Timeline", "t", access.SEE_EVENTS),
)


def header(request: HttpRequest) -> dict[str, Any]:
    """The context that the base template needs, for every page with a person."""
    if not hasattr(request, "user") or not access.is_staff(request):
        return {}
    return {
        "places": [
            {"name": name, "title": title, "key": key, "address": reverse(f"console:{name}")}
            for name, title, key, right in _PAGES
            if request.user.has_perm(right)
        ],
        "missing": "" if has_terminal() else MISSING,
    }
