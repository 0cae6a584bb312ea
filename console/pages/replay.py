"""The replay of a session: the page, what its player reads, and the download."""

from typing import Final
from uuid import UUID

from asgiref.sync import async_to_sync
from django.http import HttpRequest, HttpResponse, HttpResponseBadRequest
from django.http.response import HttpResponseBase
from django.shortcuts import render
from django.views.decorators.http import require_POST

from console.parts.access import SEE_SCREENS, page, session_or_404
from console.parts.browser_files import has_terminal
from projects.admin.parts.access import actor_of
from projects.audit.log import audit
from projects.output.recording.replay import replay_index, replay_part
from projects.reads.recordings import EXPORT_FORMATS, attachment, recording_export
from projects.storage.access import at_length

_MOST: Final = 2**62


@page(SEE_SCREENS)
def replay(request: HttpRequest, session_id: UUID) -> HttpResponse:
    """Shows the player of one session. A session of another project does not exist."""
    found = session_or_404(request, session_id)
    audit(
        actor_of(request),
        "transcript.view",
        (found.project_id, found.controller_id, found.pk),
        {"view": "replay"},
    )
    shown = {"session": found, "has_terminal": has_terminal(), "formats": EXPORT_FORMATS}
    return render(request, "console/replay.html", shown)


@page(SEE_SCREENS)
def index(request: HttpRequest, session_id: UUID) -> HttpResponse:
    """Answers the index of the recording as JSON."""
    found = async_to_sync(at_length)(replay_index, session_or_404(request, session_id))
    return _json(found.model_dump_json())


@page(SEE_SCREENS)
def part(request: HttpRequest, session_id: UUID) -> HttpResponse:
    """Answers the output from the offsets ``stdout`` and ``stderr`` on, as JSON."""
    found = session_or_404(request, session_id)
    offsets = [request.GET.get(name, "0") for name in ("stdout", "stderr")]
    if not all(offset.isascii() and offset.isdigit() for offset in offsets):
        return HttpResponseBadRequest("stdout and stderr are offsets")
    stdout, stderr = (min(int(offset[:20]), _MOST) for offset in offsets)
    return _json(async_to_sync(at_length)(replay_part, found, stdout, stderr).model_dump_json())


@page(SEE_SCREENS)
@require_POST
def download(request: HttpRequest, session_id: UUID) -> HttpResponseBase:
    """Streams the recording in one of the formats, and audits that."""
    found = session_or_404(request, session_id)
    wanted = request.POST.get("format", "cast")
    if wanted not in EXPORT_FORMATS:
        return HttpResponseBadRequest(f"format is one of {', '.join(EXPORT_FORMATS)}")
    pieces = async_to_sync(recording_export)(
        found.project_id, found.pk, export_format=wanted, actor=actor_of(request)
    )
    return attachment(pieces, found.pk, wanted)


def _json(text: str) -> HttpResponse:
    headers = {"Cache-Control": "no-store", "X-Content-Type-Options": "nosniff"}
    return HttpResponse(text, content_type="application/json", headers=headers)
