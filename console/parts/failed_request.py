"""The page of a request that failed: a mistake of ours, or something that is gone or away."""

import sys
from typing import Final

from django.db import DatabaseError, InterfaceError
from django.http import HttpRequest, HttpResponse
from django.template import loader
from django.views.defaults import page_not_found, server_error

from projects.errors.base import NotFound
from projects.errors.server import StorageUnavailable
from projects.storage.faults import is_fault

_RETRY_SECONDS: Final = "5"


def failed(request: HttpRequest) -> HttpResponse:
    """Answers 404 for a thing that is gone, 503 if the storage could not be used, else 500.

    Only the first asks the database for anything, like Django's own pages of these kinds.
    """
    error = sys.exc_info()[1]
    if isinstance(error, NotFound):
        # A page found the thing, and it was removed before the page had done its work.
        return page_not_found(request, error)
    if isinstance(error, StorageUnavailable) or (
        isinstance(error, DatabaseError | InterfaceError) and is_fault(error)
    ):
        page = loader.get_template("503.html").render()
        return HttpResponse(page, status=503, headers={"Retry-After": _RETRY_SECONDS})
    return server_error(request)
