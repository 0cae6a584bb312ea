"""What hosts ask for over plain HTTP: ``POST /controllers/enrol`` with a code, ``POST /controllers/rotate`` with a credential.

Both answer ``{"project", "controller", "credential"}`` once, or the body of an error. Neither is for browsers.
"""

import json
from collections.abc import Awaitable, Callable
from dataclasses import asdict
from functools import wraps
from typing import Any, Final

from django.http import HttpRequest, JsonResponse
from django.views.decorators.csrf import csrf_exempt

from projects.account_errors import EnrolmentRefused, RateLimited
from projects.authentication import authenticate_controller
from projects.conf import conf
from projects.database import in_database
from projects.enrolment import Enrolled, controller_credential_rotate, host_enrol
from projects.errors import ControllerActionError, Forbidden, InvalidArgument
from projects.models import ControllerCredential
from projects.peers import peer_of_request
from projects.rate_limits import rate_check, rate_take

MAX_BODY_BYTES: Final = 4096
_FAILURES: Final = "failed enrolments"


def _for_hosts(view: Callable[[HttpRequest, str], Awaitable[Enrolled]]) -> Callable[[HttpRequest], Any]:
    """POST of JSON without an Origin; every outcome as JSON that nobody keeps."""

    @csrf_exempt
    @wraps(view)
    async def answering(request: HttpRequest) -> JsonResponse:
        headers = {"Cache-Control": "no-store"}
        if request.method != "POST":
            return JsonResponse({"error": "only POST is served here"}, status=405, headers={"Allow": "POST"})
        try:
            if "Origin" in request.headers or request.content_type != "application/json":
                # A browser always sends Origin with a POST, and cannot send this type to another site unasked.
                raise Forbidden("this is for hosts: JSON, and no Origin")
            return JsonResponse(asdict(await view(request, peer_of_request(request))), headers=headers)
        except ControllerActionError as error:
            if isinstance(error, RateLimited):
                headers["Retry-After"] = str(error.retry_after_seconds)
            return JsonResponse(dict(error.body()), status=error.status, headers=headers)

    return answering


@_for_hosts
async def enrol(request: HttpRequest, peer: str) -> Enrolled:
    """``{"code": "enr_…"}``; guessing is throttled per address."""
    meter = f"enrol {peer}"
    await in_database(rate_check, meter, conf.login_failures_per_minute, _FAILURES)
    try:
        return await in_database(_enrol, _code(request), peer)
    except EnrolmentRefused:
        await in_database(rate_take, meter, 1, conf.login_failures_per_minute, _FAILURES)
        raise


@_for_hosts
async def rotate(request: HttpRequest, peer: str) -> Enrolled:
    """With the credential that is to be replaced as bearer."""
    _, credential_id = await authenticate_controller(request.headers.get("Authorization"), peer)
    return await in_database(_rotate, credential_id)


def _enrol(code: str, peer: str) -> Enrolled:
    return host_enrol(code=code, peer=peer)


def _rotate(credential_id: Any) -> Enrolled:
    return controller_credential_rotate(credential=ControllerCredential.objects.get(id=credential_id))


def _code(request: HttpRequest) -> str:
    try:
        body = json.loads(request.body) if int(request.headers.get("Content-Length") or 0) <= MAX_BODY_BYTES else None
    except (ValueError, RecursionError):
        body = None
    if not isinstance(body, dict) or not isinstance(body.get("code"), str):
        raise InvalidArgument(["code: is required"])
    return str(body["code"])
