"""The timeline: who did what, when, and on which host."""

from typing import Any, Final
from uuid import UUID

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_POST

from console.parts.access import EXPORT_EVENTS, SEE_EVENTS, hosts_of, page
from console.parts.events import FILTERS, Names, WrongFilter, events_of, names_of, wanted_by
from projects.admin.parts.access import projects_of, sees_every_project
from projects.admin.parts.display import detail_text, shortened, visible
from projects.audit.log import SERVER
from projects.audit.marks import Heads, heads_repeated
from projects.audit.proof import audit_verify, chains
from projects.models import AuditEvent

_SHOWN: Final = 200
_MOST_DIGITS: Final = 18
_QUICK: Final = (
    ("Everything", ""),
    ("Looks at screens", "transcript"),
    ("Take-overs", "take_over"),
    ("Approvals", "answer"),
    ("Logins", "login"),
)


@page(SEE_EVENTS, filters=(*FILTERS, "before"))
def timeline(request: HttpRequest) -> HttpResponse:
    """Shows events, newest first. ``?before=`` continues behind the last one of a page."""
    form = {
        "quick": _QUICK,
        "projects": projects_of(request),
        "hosts": hosts_of(request).order_by("name")[:500],
    }
    try:
        wanted, before = wanted_by(request.GET), _row_number(request.GET.get("before", ""))
    except WrongFilter as error:
        # The form keeps what was typed, so that one word of it can be corrected.
        told = {**form, "problem": str(error), "wanted": request.GET}
        return render(request, "console/timeline.html", told, status=400)
    rows = events_of(request, wanted)
    events = list((rows.filter(pk__lt=before) if before else rows)[: _SHOWN + 1])
    names = names_of(events)
    return render(
        request,
        "console/timeline.html",
        {
            **form,
            "events": [in_words(event, names) for event in events[:_SHOWN]],
            "next": events[_SHOWN - 1].pk if len(events) > _SHOWN else None,
            "wanted": wanted.values,
            "query": request.GET.copy(),
            "may_export": request.user.has_perm(EXPORT_EVENTS),
        },
    )


def _row_number(text: str) -> int:
    if not text:
        return 0
    # A longer number is no row, and SQLite takes none.
    if not (text.isascii() and text.isdecimal() and len(text) <= _MOST_DIGITS):
        raise WrongFilter(f"before: {text[:40]!r} is not understood")
    return int(text)


def in_words(event: AuditEvent, names: Names) -> dict[str, Any]:
    """One event with names in the place of ids. An id stays where nothing has it any more."""
    host, session, command = event.controller_id, event.session_id, names.command_of(event)
    return {
        "at": event.created_at,
        "actor": visible(event.actor),
        "action": visible(event.action),
        # What a filter looks for is what the row has, not what is shown of it.
        "by": event.actor,
        "did": event.action,
        "about_project": event.project_id,
        "about_host": host,
        "project": names.projects.get(event.project_id, str(event.project_id)),
        "host_id": host if host in names.hosts else None,
        "host": visible(names.hosts.get(host, str(host))) if host else "",
        "session_id": None if command is None else session,
        "session": shortened(str(session) if command is None else command, 40) if session else "",
        "about_session": session,
        "detail": detail_text(event.detail) if event.detail else "",
    }


@page(SEE_EVENTS, EXPORT_EVENTS)
@require_POST
def verify(request: HttpRequest) -> HttpResponse:
    """Verifies the chains that the person sees, or the one of the project that the form names."""
    try:
        wanted = wanted_by(request.POST)
    except WrongFilter as error:
        messages.error(request, str(error))
        return redirect("console:timeline")
    known, chosen = heads_repeated(), wanted.values.get("project")
    names = _chains_of(request, known)
    if chosen:
        names = {chain: name for chain, name in names.items() if chain == UUID(chosen)}
    if not names:
        messages.error(request, "Nothing is verified: you see no such log.")
    for chain, name in names.items():
        verdict = audit_verify(chain, known)
        if verdict.problems:
            messages.error(request, f"{name}: {'; '.join(verdict.problems[:5])}")
        elif verdict.is_unsigned:
            messages.warning(
                request,
                f"{name}: {verdict.rows} rows. No head is signed, so nobody would find that the "
                "rows were rewritten.",
            )
        else:
            messages.success(request, f"{name}: {verdict.rows} rows, none is missing or changed.")
    return redirect("console:timeline")


def _chains_of(request: HttpRequest, known: Heads) -> dict[UUID, str]:
    """The chains whose rows the time line shows to this person, with their names."""
    names = dict(projects_of(request).order_by("name").values_list("pk", "name"))
    if sees_every_project(request):
        # Also those of projects that are deleted, and that of the server itself.
        rest = {chain: str(chain) for chain in chains(known) if chain not in names}
        names |= rest | {SERVER: "the server"}
    return names
