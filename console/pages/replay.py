"""The replay of a session: the page, what its player reads, and the download."""

from functools import partial
from math import isfinite
from typing import Final
from uuid import UUID

from asgiref.sync import async_to_sync
from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseBadRequest
from django.http.response import HttpResponseBase
from django.shortcuts import redirect, render
from django.views.decorators.http import require_POST

from console.parts.access import ERASE, SEE_SCREENS, SEE_SESSIONS, page, session_or_404
from console.parts.browser_files import has_terminal
from console.parts.looks import audit_look, ensure_look
from console.parts.screens import ensure_made
from projects import services
from projects.admin.parts.access import actor_of, require_still
from projects.errors.base import ControllerActionError
from projects.models import CommandSession
from projects.output.recording.index import replay_index
from projects.output.recording.replay import replay_part
from projects.output.recording.screens import ScreenPlace, places, state_at
from projects.output.recording.timeline import beginning_of
from projects.output.result import Result
from projects.reads.recordings import EXPORT_FORMATS, recording_attachment, recording_export
from projects.sessions.selectors import ACTIVE
from projects.storage.access import at_any_length, at_length

_MOST: Final = 2**62
_HEADERS: Final = {"Cache-Control": "no-store", "X-Content-Type-Options": "nosniff"}


class Screens(Result):
    """The places at which a player may begin. ``is_growing``: there will be more."""

    is_growing: bool
    places: list[ScreenPlace]


@page(SEE_SCREENS)
def replay(request: HttpRequest, session_id: UUID) -> HttpResponse:
    """Shows the player of one session. A session of another project does not exist."""
    found = session_or_404(request, session_id)
    audit_look(request, found, "replay")
    may_erase = request.user.has_perm(ERASE) and found.state not in ACTIVE
    shown = {
        "session": found,
        "has_terminal": has_terminal(),
        "formats": EXPORT_FORMATS,
        "may_erase": may_erase,
        "began_at": async_to_sync(at_length)(beginning_of, found.pk) if may_erase else "",
    }
    return render(request, "console/replay.html", shown)


@page(SEE_SCREENS)
def index(request: HttpRequest, session_id: UUID) -> HttpResponse:
    """Answers the index of the recording as JSON."""
    found = session_or_404(request, session_id)
    ensure_look(request, found, "replay")
    return _json(async_to_sync(at_length)(replay_index, found).model_dump_json())


@page(SEE_SCREENS)
def part(request: HttpRequest, session_id: UUID) -> HttpResponse:
    """Answers the output from the offsets ``stdout`` and ``stderr`` on, as JSON."""
    found = session_or_404(request, session_id)
    stdout, stderr = _offset(request, "stdout"), _offset(request, "stderr")
    if stdout is None or stderr is None:
        return HttpResponseBadRequest("stdout and stderr are offsets")
    ensure_look(request, found, "replay")
    return _json(async_to_sync(at_length)(replay_part, found, stdout, stderr).model_dump_json())


@page(SEE_SCREENS)
def screens(request: HttpRequest, session_id: UUID) -> HttpResponse:
    """Answers where the screens after the place ``after`` are, and has missing ones made."""
    found = session_or_404(request, session_id)
    after = _offset(request, "after")
    if after is None:
        return HttpResponseBadRequest("after is an offset")
    return _json(async_to_sync(at_any_length)(_screens, found, after).model_dump_json())


def _screens(session: CommandSession, after: int) -> Screens:
    # Asked first: what is made in between is then among the places.
    is_growing = ensure_made(session)
    return Screens(is_growing=is_growing, places=places(session.pk, after))


@page(SEE_SCREENS)
def screen(request: HttpRequest, session_id: UUID) -> HttpResponse:
    """Answers the state of a terminal at a place, as JSON that is deflated as it is stored."""
    found = session_or_404(request, session_id)
    place = _offset(request, "place")
    state = None if place is None else async_to_sync(at_any_length)(state_at, found.pk, place)
    if state is None:
        raise Http404
    ensure_look(request, found, "replay")
    headers = {**_HEADERS, "Content-Encoding": "deflate"}
    return HttpResponse(state, content_type="application/json", headers=headers)


@page(SEE_SCREENS)
@require_POST
def download(request: HttpRequest, session_id: UUID) -> HttpResponseBase:
    """Streams the recording in one of the formats, and audits that."""
    found = session_or_404(request, session_id)
    wanted = request.POST.get("format", "cast")
    if wanted not in EXPORT_FORMATS:
        return HttpResponseBadRequest(f"format is one of {', '.join(EXPORT_FORMATS)}")
    pieces = async_to_sync(recording_export)(
        found.project_id,
        found.pk,
        export_format=wanted,
        actor=actor_of(request),
        require=partial(require_still, request, [found.project_id], SEE_SESSIONS, SEE_SCREENS),
    )
    return recording_attachment(pieces, found.pk, wanted)


@page(SEE_SCREENS, ERASE)
@require_POST
def erase(request: HttpRequest, session_id: UUID) -> HttpResponse:
    """Deletes what was printed between two moments, or all of it without moments."""
    found = session_or_404(request, session_id)
    about, actor = (found.project_id, found.pk), actor_of(request)
    try:
        if request.POST.get("whole"):
            async_to_sync(services.output_clear)(*about, actor=actor)
            messages.success(request, "Deleted: all that the session printed.")
        else:
            since, until = (_seconds(request, name) for name in ("from", "to"))
            size = async_to_sync(services.output_black_out)(
                *about,
                from_seconds=since,
                to_seconds=until,
                actor=actor,
                began_at=request.POST.get("began_at"),
            )
            messages.success(request, f"Blacked out: {size} bytes.")
    except ValueError:
        messages.error(request, "Nothing is deleted: from and to are seconds.")
    except ControllerActionError as refusal:
        messages.error(request, f"Nothing is deleted: {refusal}.")
    return redirect("console:replay", session_id)


def _seconds(request: HttpRequest, name: str) -> float:
    """Returns a number of the form. Raises ValueError."""
    seconds = float(request.POST.get(name, ""))
    if not isfinite(seconds):
        raise ValueError(name)
    return seconds


def _offset(request: HttpRequest, name: str) -> int | None:
    """Returns the number in the address, 0 if there is none; None if it is no offset."""
    text = request.GET.get(name, "0")
    return min(int(text[:20]), _MOST) if text.isascii() and text.isdigit() else None


def _json(text: str) -> HttpResponse:
    return HttpResponse(text, content_type="application/json", headers=_HEADERS)
