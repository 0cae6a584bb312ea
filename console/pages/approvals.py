"""The queue of calls that wait for a person, and the page of each."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from asgiref.sync import async_to_sync
from django.contrib import messages
from django.db.models import Q, QuerySet
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.views.decorators.http import require_POST

from console.parts.access import ANSWER, SEE_APPROVALS, SEE_RUNS, SEE_SCREENS, page, sessions_of
from console.parts.header import open_approvals_of
from console.parts.looks import screen_text
from console.parts.shares import fair_share
from projects.admin.parts.access import actor_of, projects_of
from projects.admin.parts.display import spelled, visible
from projects.audit.log import audit
from projects.errors.base import ControllerActionError
from projects.models import Approval
from projects.policy.call_risk import MONITORS, TYPERS
from projects.sessions.approvals.answering import approval_answer, is_own_call
from projects.sessions.approvals.asking import asked_of
from projects.sessions.approvals.disclosure import (
    FIRST_ARGUMENTS,
    NO_FILE,
    arguments_shown,
    disclosure_of,
)
from projects.wakeups.doorbells import ring_approval

_MOST: Final = 100


@dataclass(frozen=True, slots=True)
class Span:
    """A piece of an exact text; ``is_marked`` if it spells out what could not be seen."""

    text: str
    is_marked: bool


@page(SEE_APPROVALS, filters=())
def approvals(request: HttpRequest) -> HttpResponse:
    """Shows what waits for a person in the person's projects, oldest first, and what is over."""
    waiting = fair_share(open_approvals_of(request).select_related("project"), "pk", _MOST)
    over = _rows(request).exclude(answer=Approval.Answer.PENDING).order_by("-id")
    context = {
        "waiting": [(row, _lead(row)) for row in waiting],
        "most": _MOST,
        "over": over[:_MOST],
    }
    return render(request, "console/approvals.html", context)


@page(SEE_APPROVALS)
def approval(request: HttpRequest, approval_id: int) -> HttpResponse:
    """Shows one call with all that a person needs to know. One of others does not exist."""
    row = get_object_or_404(_rows(request), pk=approval_id)
    now, told = asked_of(row), disclosure_of(row)
    context = {
        "approval": row,
        "log_file": visible(row.session_command) if row.tool in MONITORS else "",
        "files": [(visible(file.path), file.content) for file in told.files],
        "no_file": NO_FILE if told.names_no_file else "",
        "notices": told.notices,
        "answer": now.answer,
        "is_open": now.is_pending,
        "arguments": [(visible(name), list(exact(value))) for name, value in arguments_shown(row)],
        "reason": visible(row.reason),
        "screen": _screen(request, row),
        "may_read": request.user.has_perm(SEE_SCREENS),
        "is_own": is_own_call(row, actor_of(request)),
        "may_answer": request.user.has_perm(ANSWER),
        "run_id": row.origin.get("run") if request.user.has_perm(SEE_RUNS) else None,
    }
    return render(request, "console/approval.html", context)


@page(SEE_APPROVALS, ANSWER)
@require_POST
def answer(request: HttpRequest, approval_id: int) -> HttpResponse:
    """Approves the call once, or denies it with words for its caller."""
    row = get_object_or_404(_rows(request), pk=approval_id)
    is_approved = request.POST.get("answer") == "approve"
    try:
        is_first = approval_answer(
            approval_id=row.pk,
            is_approved=is_approved,
            actor=actor_of(request),
            reason=request.POST.get("reason", ""),
        )
    except ControllerActionError as error:
        messages.error(request, error.line())
        return redirect("console:approval", approval_id)
    async_to_sync(ring_approval)(row.pk)
    if is_first:
        said = "Approved" if is_approved else "Denied"
        messages.success(request, f"{said}: #{row.pk}.")
    else:
        messages.error(request, f"#{row.pk} was over already, and nothing was changed.")
    run_id = row.origin.get("run")
    if run_id is not None and request.POST.get("run") == run_id:
        return redirect("console:run", run_id)
    return redirect("console:approvals")


def exact(value: object) -> Iterator[Span]:
    """The value in pieces. Every character that could hide or mislead is spelled out and marked.

    A line break is marked and kept.
    """
    plain = ""
    for char, shown in spelled(str(value)):
        if shown == char:
            plain += char
            continue
        if plain:
            yield Span(plain, is_marked=False)
            plain = ""
        yield Span(f"{shown}\n" if char == "\n" else shown, is_marked=True)
    if plain:
        yield Span(plain, is_marked=False)


def _rows(request: HttpRequest) -> QuerySet[Approval]:
    rows = Approval.objects.select_related("project")
    return rows.filter(project__in=projects_of(request))


def _lead(row: Approval) -> str:
    """The call in one line of the queue."""
    name, text = next(arguments_shown(row), ("", ""))
    said = visible(text) if name in FIRST_ARGUMENTS else f"{visible(name)} {visible(text)}"
    return f"{row.tool} {said}".strip()


def _screen(request: HttpRequest, row: Approval) -> str:
    """The screen of the session that is typed into. The look is put on record."""
    if row.tool not in TYPERS or not request.user.has_perm(SEE_SCREENS):
        return ""
    session = sessions_of(request).filter(Q(pk=row.session_id), cleared_at=None).first()
    if session is None:
        return ""
    about = (session.project_id, session.controller_id, session.pk)
    audit(actor_of(request), "transcript.view", about, {"approval": row.pk})
    return screen_text(session)
