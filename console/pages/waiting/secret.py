"""The page on which a person types the secret that a program asks for, made for a phone."""

from uuid import UUID

from asgiref.sync import async_to_sync
from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.debug import sensitive_post_parameters

from console.parts.access import SEE_SCREENS, TYPE, page, session_or_404
from projects import services
from projects.accounts.authentication import Caller
from projects.admin.parts.access import actor_of
from projects.admin.parts.display import shortened
from projects.errors.base import ControllerActionError
from projects.models import AttentionEvent, AttentionKind, CommandSession
from projects.secrets.masks import mask_of


@sensitive_post_parameters("typed")
@page(TYPE)
def secret(request: HttpRequest, session_id: UUID) -> HttpResponse:
    """Shows one field, and types what a person has put into it."""
    found = session_or_404(request, session_id)
    if request.method == "POST":
        _type(request, found)
        return redirect("console:secret", session_id)
    is_asking = found.terminal_state == "awaiting_input" and found.terminal_kind == "secret"
    wanted = AttentionEvent.objects.filter(
        session=found, kind=AttentionKind.SECRET_WANTED, resolved_at__isnull=True
    ).values_list("wanted", flat=True)
    may_read = request.user.has_perm(SEE_SCREENS)
    mask = mask_of(found.id, found.sealed_secrets)
    context = {
        "session": found,
        "command": shortened(found.command, 200),
        "is_asking": is_asking and found.terminal_input_seq >= found.input_seq,
        "wanted": shortened(wanted.first() or "", 200),
        "prompt": shortened(mask.masked(found.terminal_prompt), 200) if may_read else "",
    }
    answer = render(request, "console/secret.html", context)
    answer["Cache-Control"] = "no-store"
    return answer


def _type(request: HttpRequest, found: CommandSession) -> None:
    caller = Caller(found.project_id, actor_of(request), frozenset({"session:input"}))
    number = request.POST.get("input_seq", "")
    try:
        async_to_sync(services.session_person_type)(
            found.project_id,
            found.id,
            request.POST.get("typed", ""),
            caller=caller,
            input_seq=int(number) if number.isdecimal() and len(number) < 19 else -1,
        )
    except ControllerActionError as error:
        messages.error(request, error.line())
    else:
        messages.success(request, "It is typed. Nobody else has seen it.")
