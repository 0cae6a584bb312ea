"""The page of a request that failed: the storage's failure is told apart from our own."""

import sys
from typing import Final

from django.db import DatabaseError, InterfaceError
from django.http import HttpRequest, HttpResponse
from django.template import loader
from django.views.defaults import server_error

from projects.errors.server import StorageUnavailable
from projects.storage.faults import is_fault

_RETRY_SECONDS: Final = "5"


def failed(request: HttpRequest) -> HttpResponse:
    """Answers 503 if the storage could not be used, else 500.

    Like Django's own page of this kind, neither asks the database for anything.
    """
    error = sys.exc_info()[1]
    if isinstance(error, StorageUnavailable) or (
        isinstance(error, DatabaseError | InterfaceError) and is_fault(error)
    ):
        page = loader.get_template("503.html").render()
        return HttpResponse(page, status=503, headers={"Retry-After": _RETRY_SECONDS})
    return server_error(request)
