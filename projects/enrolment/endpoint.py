"""The two requests that hosts make over plain HTTP.

* ``POST /controllers/enrol`` with a code
* ``POST /controllers/rotate`` with a credential

Both answer ``{"project", "controller", "credential"}`` once, or the body of an error. Neither is
for browsers.
"""

import json
from collections.abc import Awaitable, Callable
from dataclasses import asdict
from functools import wraps
from typing import Any, Final
from uuid import UUID

from django.db import transaction
from django.http import HttpRequest, JsonResponse
from django.views.decorators.csrf import csrf_exempt

from projects.accounts.authentication import authenticate_controller
from projects.accounts.client_address import network_of, peer_of_request
from projects.accounts.errors import EnrolmentRefused, RateLimited
from projects.accounts.rate_limits import rate_give_back, rate_take
from projects.conf import conf
from projects.enrolment.codes import Enrolled, controller_credential_rotate, host_enrol
from projects.errors.base import ControllerActionError, Forbidden
from projects.errors.calls import InvalidArgument
from projects.models import ControllerCredential
from projects.storage.access import in_database

MAX_BODY_BYTES: Final = 4096
_FAILURES: Final = "failed enrolments"


def _for_hosts(
    view: Callable[[HttpRequest, str], Awaitable[Enrolled]],
) -> Callable[[HttpRequest], Any]:
    """A view that takes POST of JSON without an Origin, and forbids caches to keep its answer."""

    @csrf_exempt
    @wraps(view)
    async def answering(request: HttpRequest) -> JsonResponse:
        headers = {"Cache-Control": "no-store"}
        if request.method != "POST":
            return JsonResponse(
                {"error": "only POST is served here"}, status=405, headers={"Allow": "POST"}
            )
        try:
            if "Origin" in request.headers or request.content_type != "application/json":
                # A browser sends Origin with every POST, and asks before it sends this type to
                # another site.
                raise Forbidden("this address is for hosts: send JSON, and no Origin")
            return JsonResponse(
                asdict(await view(request, peer_of_request(request))), headers=headers
            )
        except ControllerActionError as error:
            if isinstance(error, RateLimited):
                headers["Retry-After"] = str(error.retry_after_seconds)
            return JsonResponse(dict(error.body()), status=error.status, headers=headers)

    return answering


@_for_hosts
async def enrol(request: HttpRequest, peer: str) -> Enrolled:
    """Answers ``{"code": "enr_…", "name": "…", "labels": ["…"]}``, of which two may be missing.

    Guesses are limited by address.
    """
    enrolled = await in_database(_enrolled, peer, _wanted(request))
    if enrolled is None:
        raise EnrolmentRefused
    return enrolled


@transaction.atomic
def _enrolled(peer: str, wanted: dict[str, str]) -> Enrolled | None:
    """The host with its credential; None for a guess, which is counted.

    Nobody else sees that a right code was counted for a moment, and what fails uses nothing up.
    """
    rate = (f"enrol {network_of(peer)}", 1, conf.login_failures_per_minute)
    # Taken before the code is looked at, so that no guess of many at once slips through.
    rate_take(*rate, _FAILURES)
    try:
        enrolled = host_enrol(peer=peer, **wanted)
    except EnrolmentRefused:
        return None
    rate_give_back(*rate)
    return enrolled


@_for_hosts
async def rotate(request: HttpRequest, peer: str) -> Enrolled:
    """Replaces the credential that the request shows as its bearer token."""
    shown = await authenticate_controller(request.headers.get("Authorization"), peer)
    return await in_database(_rotate, shown.credential_id)


def _rotate(credential_id: UUID) -> Enrolled:
    return controller_credential_rotate(
        credential=ControllerCredential.objects.get(id=credential_id)
    )


def _wanted(request: HttpRequest) -> dict[str, str]:
    """The code, the host's name and its labels."""
    try:
        body = json.loads(request.body) if len(request.body) <= MAX_BODY_BYTES else None
    except (ValueError, RecursionError):
        body = None
    if not isinstance(body, dict) or not isinstance(body.get("code"), str):
        raise InvalidArgument(["code: is required"])
    name, labels = body.get("name", ""), body.get("labels", [])
    if not isinstance(name, str):
        raise InvalidArgument(["name: has to be a text"])
    if not isinstance(labels, list) or not all(isinstance(label, str) for label in labels):
        raise InvalidArgument(["labels: has to be a list of texts"])
    return {"code": body["code"], "name": name, "labels": " ".join(labels)}
