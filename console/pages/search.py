"""The search in what programs printed, in commands and in monitored logs."""

import time
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final
from uuid import UUID

from asgiref.sync import async_to_sync
from django.db.models.functions import Coalesce
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render

from console.parts.access import SEE_SCREENS, SEE_SESSIONS, page, sessions_of
from projects import services
from projects.admin.parts.access import actor_of, projects_of
from projects.admin.parts.display import visible
from projects.audit.log import audit
from projects.errors.calls import InvalidPattern
from projects.models import CommandSession, OutputChunk, Project
from projects.reads.search import Hit

_LOG: Final = "log"
"""The stream of a hit in the log of a monitor."""
_MOST_HITS: Final = 50
_MOST_COMMANDS: Final = 20
_MOST_PROJECTS: Final = 20
_MOST_SECONDS: Final = 10.0
"""No further project is searched after this."""


@dataclass(frozen=True, slots=True)
class HitInWords:
    """A hit with its session, and the moment at which the line was written."""

    session: CommandSession | None
    offset: int
    stream: str
    line: str
    before: list[str]
    after: list[str]
    at: datetime | None


@dataclass(slots=True)
class Found:
    """The hits of all projects. ``is_cut``: there is more than was searched or shown."""

    hits: list[HitInWords] = field(default_factory=list)
    is_cut: bool = False


@page(SEE_SESSIONS, SEE_SCREENS, filters=("q", "project"))
def search(request: HttpRequest) -> HttpResponse:
    """Shows the lines that match ``?q=``, and sessions whose command contains it."""
    wanted, chosen = request.GET.get("q", ""), request.GET.get("project", "")
    projects = list(projects_of(request).order_by("name"))
    context: dict[str, Any] = {"q": wanted, "project": chosen, "projects": projects}
    if not wanted:
        return render(request, "console/search.html", context)
    searched = [one for one in projects if not chosen or str(one.pk) == chosen]
    try:
        found = _search(searched, wanted, actor_of(request))
    except InvalidPattern as error:
        return render(
            request,
            "console/search.html",
            {**context, "problem": error.line()},
            status=400,
        )
    commands = sessions_of(request).filter(project__in=searched, command__icontains=wanted)
    sessions = list(commands.order_by("-created_at")[: _MOST_COMMANDS + 1])
    context["sessions"] = sessions[:_MOST_COMMANDS]
    context["most"] = _MOST_COMMANDS if len(sessions) > _MOST_COMMANDS else 0
    return render(request, "console/search.html", {**context, "found": found})


def _search(projects: list[Project], pattern: str, actor: str) -> Found:
    """Searches one project after the other. Raises InvalidPattern."""
    found = Found(is_cut=len(projects) > _MOST_PROJECTS)
    deadline = time.monotonic() + _MOST_SECONDS
    for project in projects[:_MOST_PROJECTS]:
        room = _MOST_HITS - len(found.hits)
        if room <= 0 or time.monotonic() >= deadline:
            found.is_cut = True
            break
        result = async_to_sync(services.output_search)(project.pk, pattern, max_results=room)
        found.is_cut |= result.next is not None
        found.hits += _in_words(result.hits)
        # Whoever saw output is on record, with the sessions but without the words looked for.
        seen = sorted({str(hit.session_id) for hit in result.hits})
        if seen:
            audit(actor, "transcript.search", (project.pk, None, None), {"sessions": seen})
    return found


def _in_words(hits: list[Hit]) -> list[HitInWords]:
    # The id of a monitor is its caller's choice, and may be that of a session anywhere.
    ids = {hit.session_id for hit in hits if hit.stream != _LOG}
    rows = CommandSession.objects.filter(pk__in=ids).select_related("controller", "project")
    sessions = {row.pk: row for row in rows}
    return [
        HitInWords(
            session=None if hit.stream == _LOG else sessions.get(hit.session_id),
            offset=hit.offset,
            stream=hit.stream,
            line=visible(hit.line, keep="\t"),
            before=[visible(line, keep="\t") for line in hit.before],
            after=[visible(line, keep="\t") for line in hit.after],
            at=_moment(hit.session_id, hit.stream, hit.offset),
        )
        for hit in hits
    ]


def _moment(session_id: UUID, stream: str, offset: int) -> datetime | None:
    """The time of the chunk with this byte as its replay has it; None for the log of a monitor."""
    chunks = OutputChunk.objects.filter(session_id=session_id, stream=stream, offset__lte=offset)
    at = chunks.order_by("-offset").values_list(Coalesce("host_time", "created_at"), flat=True)
    return at.first()
