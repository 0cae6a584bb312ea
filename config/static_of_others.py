"""Static files that this process does not have: those of another release, and those of none.

While servers are upgraded one after the other, a page of one release asks for its files where
another release may answer. 503 says that this process did nothing, so a proxy asks the next one.
"""

from django.conf import settings
from django.http import HttpRequest, HttpResponse, HttpResponseNotFound

STATIC_OF_A_RELEASE = r"^static/[0-9a-f]{12}/"
"""Every path under ``STATIC_URL`` of some release (``config.settings.static_names``)."""


def not_here(request: HttpRequest) -> HttpResponse:
    """Answer 404 for a file that this release would have, and 503 for those of other releases."""
    # A browser must ask again: the next process, or this one after its upgrade, may have the file.
    kept = {"Cache-Control": "no-store"}
    if request.path.startswith(settings.STATIC_URL):
        return HttpResponseNotFound("there is no such file\n", "text/plain", headers=kept)
    text = "this server has another release; load the page again\n"
    return HttpResponse(text, "text/plain", status=503, headers=kept)
