"""The part of a session's page with which an operator takes the session over.

The operator types, presses keys, and hands the session back with a note. It needs the permission
``take_over_session``.
"""

from collections.abc import Sequence
from typing import Any
from uuid import UUID

from asgiref.sync import async_to_sync
from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse, HttpResponseNotAllowed
from django.shortcuts import redirect
from django.utils import timezone

from projects import services
from projects.accounts import ages
from projects.accounts.authentication import Caller
from projects.admin.parts.access import actor_of
from projects.admin.parts.display import shortened
from projects.errors.base import ControllerActionError
from projects.models import CommandSession
from projects.sessions.answers.hints import in_iso
from projects.sessions.answers.results import InteractiveOutputResult
from projects.sessions.selectors import ACTIVE

TYPING_WAIT_SECONDS = 3.0


def may_take_over(request: HttpRequest) -> bool:
    """Returns True if the user may take over sessions of their projects."""
    return request.user.has_perm("projects.take_over_session")


def context_of(request: HttpRequest, session: CommandSession) -> dict[str, Any]:
    """The template context for this part of the session's page."""
    return {
        "may_take_over": may_take_over(request)
        and session.state in ACTIVE
        and session.kind == CommandSession.Kind.INTERACTIVE,
        "taken_by": shortened(session.taken_over_by),
        "is_mine": session.taken_over_by == actor_of(request),
        "clock": _clock(session),
        "is_hidden": session.terminal_state == "awaiting_input"
        and session.terminal_kind == "secret",
        # A form that is sent twice, by a second click or by the browser, is typed once.
        "once": ages.new_id(),
    }


def _clock(session: CommandSession) -> str:
    """A sentence about the end of the session's lifetime; empty if the session is not active."""
    clock, now = session.lifetime_clock, timezone.now()
    if session.state not in ACTIVE or (latest := clock.expires_at_latest(now)) is None:
        return ""
    if clock.is_paused(now):
        return f"The lifetime of this session is paused. It ends at {in_iso(latest)} at the latest."
    return f"The lifetime of this session ends at {in_iso(clock.expires_at(now) or latest)}."


def operate(request: HttpRequest, session: CommandSession) -> HttpResponse:
    """Does what the pressed button says, and shows the session's page with the outcome."""
    if request.method != "POST":
        return HttpResponseNotAllowed(["POST"])
    if not may_take_over(request):
        raise PermissionDenied
    try:
        done = async_to_sync(_operate)(
            session.project_id, session.pk, actor_of(request), request.POST.dict()
        )
    except ControllerActionError as error:
        messages.error(request, f"{error} ({error.code})")
    else:
        level = messages.SUCCESS if done else messages.WARNING
        messages.add_message(
            request,
            level,
            done or "Nothing was done: the field is empty. Use the button for Enter alone.",
        )
    return redirect("admin:projects_commandsession_change", session.pk)


async def _operate(project_id: UUID, session_id: UUID, operator: str, form: dict[str, str]) -> str:
    """Carries out one button. Returns a sentence about it; empty if there was nothing to do."""
    match form.get("do"):
        case "take":
            clock = await services.session_take_over(project_id, session_id, operator=operator)
            return f"You have the keyboard. {clock}"
        case "hand_back":
            note = form.get("note", "").strip()
            await services.session_hand_back(project_id, session_id, operator=operator, note=note)
            return "Handed back with your note." if note else "Handed back."
    text, keys = form.get("text", ""), form.get("keys", "").split()
    # Each button: the text to type, the keys to press, and the message. An empty field never means
    # Enter.
    text, keys, done = {
        "line": (f"{text}\n" if text else "", [], "Typed a line and Enter."),
        "text": (text, [], "Typed, without Enter."),
        "keys": ("", keys, f"Pressed {shortened(' '.join(keys))}."),
        "enter": ("", ["enter"], "Pressed Enter."),
    }.get(form.get("do", ""), ("", [], ""))
    return (
        await _type(
            project_id,
            session_id,
            operator,
            text=text,
            keys=keys,
            done=done,
            request_id=_once(form),
        )
        if text or keys
        else ""
    )


def _once(form: dict[str, str]) -> UUID | None:
    """The id of the form; None if it has none."""
    try:
        return UUID(form.get("once", ""))
    except ValueError:
        return None


async def _type(
    project_id: UUID,
    session_id: UUID,
    operator: str,
    *,
    done: str,
    text: str = "",
    keys: Sequence[str] = (),
    request_id: UUID | None = None,
) -> str:
    caller = Caller(
        project_id=project_id, label=operator, scopes=frozenset({"session:input", "shell:any"})
    )
    result = await services.controller_send_input(
        project_id,
        session_id,
        text,
        keys=keys,
        caller=caller,
        wait_seconds=TYPING_WAIT_SECONDS,
        is_showing=False,
        has_keyboard=True,
        request_id=request_id,
    )
    return f"{done} {sentence_about(result)}"


def sentence_about(result: InteractiveOutputResult) -> str:
    """Says what the program does after something was typed."""
    if result.prompt:
        return f"The program waits for input ({result.prompt.kind})."
    return "The program has ended." if result.state == "exited" else "The program goes on."
