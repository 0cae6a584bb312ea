"""``GET /recordings/SESSION?format=cast|text|raw``: a recording for a caller with an API token.

The token needs the scope ``session:read``, as for every read of output. The answer streams, and
holds what is stored when the request begins. It breaks off if the token is revoked meanwhile. Like
a call, it takes one of the places of its token until its last byte.
"""

from contextlib import AsyncExitStack
from functools import partial
from typing import Final
from uuid import UUID

from django.http import HttpRequest, JsonResponse, StreamingHttpResponse
from django.http.response import HttpResponseBase

from config.edge.requests import Application, Receive, Scope, Send
from projects.accounts.authentication import check_caller
from projects.accounts.call_places import place
from projects.accounts.client_address import peer_of_request
from projects.accounts.errors import RateLimited
from projects.accounts.token_check import authenticate_api_token
from projects.accounts.tokens import shown_token
from projects.errors.base import ControllerActionError
from projects.errors.calls import InvalidArgument
from projects.reads.recordings import (
    EXPORT_FORMATS,
    RESPONSE_HEADERS,
    ExportFormat,
    recording_attachment,
    recording_export,
)

SCOPE: Final = "session:read"
PATH: Final = "/recordings/"
_NO_PLACE: Final = "holdline.no_place"


async def in_a_place(application: Application, scope: Scope, receive: Receive, send: Send) -> None:
    """Serve while a place of the shown token is held; ``recording`` answers if there is none."""
    header = dict(scope["headers"]).get(b"authorization", b"").decode("latin-1")
    async with AsyncExitStack() as held:
        try:
            await held.enter_async_context(place(shown_token(header)))
        except ControllerActionError as refusal:
            scope = {**scope, _NO_PLACE: refusal}
        await application(scope, receive, send)


async def recording(request: HttpRequest, session_id: UUID) -> HttpResponseBase:
    """Streams one recording. Errors have the body and the status that tools answer with."""
    if request.method != "GET":
        body = {"error": "only GET is served here"}
        return JsonResponse(body, status=405, headers={"Allow": "GET"})
    try:
        return await _answer(request, session_id)
    except ControllerActionError as error:
        headers = dict(RESPONSE_HEADERS)
        if isinstance(error, RateLimited):
            headers["Retry-After"] = str(error.retry_after_seconds)
        return JsonResponse(dict(error.body()), status=error.status, headers=headers)


async def _answer(request: HttpRequest, session_id: UUID) -> StreamingHttpResponse:
    if refusal := getattr(request, "scope", {}).get(_NO_PLACE):
        raise refusal
    header = request.headers.get("Authorization")
    caller = await authenticate_api_token(header, peer_of_request(request))
    caller.require(SCOPE)
    wanted = _format_of(request)
    found = await recording_export(
        caller.project_id,
        session_id,
        export_format=wanted,
        actor=caller.label,
        require=partial(check_caller, caller),
    )
    return recording_attachment(found, session_id, wanted)


def _format_of(request: HttpRequest) -> ExportFormat:
    wanted = request.GET.get("format", "cast")
    for known in EXPORT_FORMATS:
        if wanted == known:
            return known
    raise InvalidArgument([f"format: must be one of {', '.join(EXPORT_FORMATS)}"])
