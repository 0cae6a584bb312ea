"""A person at a caller's keyboard: take the session over, type, hand it back with a note. For who has ``take_over_session``."""

from typing import Any
from uuid import UUID

from asgiref.sync import async_to_sync
from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse, HttpResponseNotAllowed
from django.shortcuts import redirect

from projects import services
from projects.admin.access import actor_of
from projects.admin.display import shortened
from projects.authentication import Caller
from projects.errors import ControllerActionError
from projects.models import CommandSession
from projects.selectors import ACTIVE

TYPING_WAIT_SECONDS = 3.0


def may_take_over(request: HttpRequest) -> bool:
    """Whether the user may type in sessions of their projects."""
    return request.user.has_perm("projects.take_over_session")


def context_of(request: HttpRequest, session: CommandSession) -> dict[str, Any]:
    """What the session's page shows of it."""
    return {
        "may_take_over": may_take_over(request) and session.state in ACTIVE and session.kind == CommandSession.Kind.INTERACTIVE,
        "taken_by": shortened(session.taken_over_by),
        "is_mine": session.taken_over_by == actor_of(request),
        "is_hidden": session.terminal_state == "awaiting_input" and session.terminal_kind == "secret",
    }


def operate(request: HttpRequest, session: CommandSession) -> HttpResponse:
    """Does what the form says, and goes back to the page, which shows what came of it."""
    if request.method != "POST":
        return HttpResponseNotAllowed(["POST"])
    if not may_take_over(request):
        raise PermissionDenied
    try:
        async_to_sync(_operate)(session.project_id, session.pk, actor_of(request), request.POST.dict())
    except ControllerActionError as error:
        messages.error(request, f"{error} ({error.code})")
    return redirect("admin:projects_commandsession_change", session.pk)


async def _operate(project_id: UUID, session_id: UUID, operator: str, form: dict[str, str]) -> None:
    match form.get("do"):
        case "take":
            await services.session_take_over(project_id, session_id, operator=operator)
        case "hand_back":
            await services.session_hand_back(project_id, session_id, operator=operator, note=form.get("note", ""))
        case "type":
            caller = Caller(project_id=project_id, label=operator, scopes=frozenset({"session:input", "shell:any"}))
            keys = [key for key in form.get("keys", "").split() if key]
            text = "" if keys else form.get("text", "") + "\n"
            await services.controller_send_input(
                project_id, session_id, text, keys=keys, caller=caller, wait_seconds=TYPING_WAIT_SECONDS, is_showing=False
            )
