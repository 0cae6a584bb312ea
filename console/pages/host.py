"""One host: its facts, its sessions, and what can be done about them."""

import asyncio
from collections.abc import Callable
from functools import partial
from typing import Final
from uuid import UUID

from asgiref.sync import async_to_sync
from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.db import transaction
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.views.decorators.http import require_POST

from console.pages.hosts import with_facts
from console.parts.access import (
    MANAGE_HOSTS,
    SEE_HOSTS,
    TERMINATE,
    hosts_of,
    page,
    sessions_of,
)
from console.parts.hosts import in_words
from controller_client import __version__
from projects import services
from projects.admin.parts.access import actor_of
from projects.admin.parts.display import shortened
from projects.enrolment.revocation import controller_revoke
from projects.models import CommandSession, Controller
from projects.sessions.selectors import ACTIVE, IS_ACTIVE, found_after_starts
from projects.storage.access import in_database
from projects.wakeups import doorbells

_MOST_ENDED: Final = 20
# The answer of a host that is well comes within milliseconds.
_LOOK_SECONDS: Final = 0.05
_LOOKS: Final = 100
_ROUNDS: Final = 5


@page(SEE_HOSTS)
def host(request: HttpRequest, host_id: UUID) -> HttpResponse:
    """Shows one host. A host of another project does not exist."""
    rows = with_facts(hosts_of(request).select_related("project"))
    found = get_object_or_404(rows, pk=host_id)
    sessions = sessions_of(request).filter(controller=found).order_by("-created_at")
    ended = list(sessions.exclude(state__in=ACTIVE)[: _MOST_ENDED + 1])
    return render(
        request,
        "console/host.html",
        {
            "host": in_words(found),
            "active": sessions.filter(IS_ACTIVE),
            "ended": ended[:_MOST_ENDED],
            "most_ended": _MOST_ENDED if len(ended) > _MOST_ENDED else 0,
            "server_version": __version__,
            "may_terminate": request.user.has_perm(TERMINATE),
            "may_manage": request.user.has_perm(MANAGE_HOSTS) and found.revoked_at is None,
        },
    )


@page(SEE_HOSTS)
@require_POST
def measure(request: HttpRequest, host_id: UUID) -> HttpResponse:
    """Measures the echo time of the host now. A daemon of an older version does not answer."""
    found = get_object_or_404(hosts_of(request), pk=host_id)
    if not async_to_sync(_is_measured)(found):
        messages.error(request, "No terminal of the host has echoed.")
    return redirect("console:host", host_id)


async def _is_measured(found: Controller) -> bool:
    before = found.echoed_at
    await doorbells.ring_echo(found.pk)
    for _ in range(_LOOKS):
        await asyncio.sleep(_LOOK_SECONDS)
        await in_database(found.refresh_from_db, fields=["echoed_at"])
        if found.echoed_at != before:
            return True
    return False


@page(TERMINATE)
@require_POST
def stop_all(request: HttpRequest, host_id: UUID) -> HttpResponse:
    """Ends every active session of the host."""
    found = get_object_or_404(hosts_of(request), pk=host_id)
    _end_sessions(request, found)
    return redirect("console:host", host_id)


@page(MANAGE_HOSTS)
@require_POST
def revoke(request: HttpRequest, host_id: UUID) -> HttpResponse:
    """Revokes the host, after its sessions have ended if the form says so."""
    found = get_object_or_404(hosts_of(request), pk=host_id)
    wants_end = bool(request.POST.get("end"))
    if wants_end and not request.user.has_perm(TERMINATE):
        # The right was there when the form was shown. Nobody asked for a host without its end.
        raise PermissionDenied
    revoke_it = partial(controller_revoke, controller=found, actor=actor_of(request))
    if not wants_end:
        revoke_it()
    elif not _end_sessions(request, found, revoke_it):
        messages.error(request, "The host is not revoked, because a session there has not ended.")
        return redirect("console:host", host_id)
    messages.success(request, f"Revoked: {found.name}.")
    return redirect("console:host", host_id)


def _end_sessions(
    request: HttpRequest, found: Controller, then: Callable[[], None] = lambda: None
) -> bool:
    """Asks every active session to end. Returns True if all have ended.

    It looks again for sessions that started meanwhile, a few times: callers may go on starting.
    If all have ended it calls ``then``, before another session can start.
    """
    asked: list[CommandSession] = []
    problems: list[str] = []
    is_quiet = False
    active = CommandSession.objects.filter(IS_ACTIVE, controller=found)
    for _ in range(_ROUNDS):
        with transaction.atomic():
            others = active.exclude(pk__in=[session.pk for session in asked])
            fresh = found_after_starts(found.project_id, others)
            is_quiet = not fresh
            if is_quiet and not any(problems):
                then()
        if is_quiet:
            break
        ids = [(session.project_id, session.pk) for session in fresh]
        problems += async_to_sync(services.sessions_terminate)(ids, actor=actor_of(request))
        asked += fresh
    else:
        messages.error(request, "Callers go on starting sessions. Look again.")
    failed = [(row, problem) for row, problem in zip(asked, problems, strict=True) if problem]
    for session, problem in failed:
        messages.error(request, f"{shortened(session.command)} has not ended: {problem}")
    count = len(asked) - len(failed)
    messages.success(request, f"Ended {count} session{'' if count == 1 else 's'}.")
    return is_quiet and not failed
