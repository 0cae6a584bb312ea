"""Looks at what programs printed and what agents did, on record in the audit log.

A page puts a look on record each time it is opened. What the page then reads in parts belongs to
that look. Whoever reads the parts without the page makes a look of their own.
"""

from datetime import timedelta
from typing import Any, Final

from django.db.models import QuerySet
from django.http import HttpRequest

from agent.models import AgentRun
from projects.admin.parts.access import actor_of
from projects.admin.parts.display import visible
from projects.audit.log import audit
from projects.models import AuditEvent, CommandSession
from projects.output.view import view_screen
from projects.storage import clock

LOOK_LASTS: Final = timedelta(hours=1)
"""A person who reads on after this long makes another look."""
_SESSION: Final = "transcript.view"
_RUN: Final = "agent_run.view"


def screen_text(session: CommandSession) -> str:
    """Return what the terminal of the session shows, with hidden characters spelled out.

    It is for pages that show the screen without the terminal emulator.
    """
    shown = view_screen(session.pk, session.stdout_next_offset, session.rows, session.cols)
    return visible(shown.text.rstrip(), keep="\n")


def audit_look(request: HttpRequest, session: CommandSession, view: str) -> None:
    """Put a look at the output of a session on record. ``view``: where it is shown."""
    about = (session.project_id, session.controller_id, session.pk)
    audit(actor_of(request), _SESSION, about, {"view": view})


def ensure_look(request: HttpRequest, session: CommandSession, view: str) -> None:
    """Put it on record unless a look of this person that still lasts is there."""
    if not _lasting(request, _SESSION).filter(session_id=session.pk).exists():
        audit_look(request, session, view)


def audit_run_look(request: HttpRequest, run: AgentRun) -> None:
    """Put a look at the transcript of an agent run on record."""
    audit(actor_of(request), _RUN, (run.project_id, None, None), {"run": str(run.pk)})


def ensure_run_look(request: HttpRequest, run: AgentRun) -> None:
    """Put it on record unless a look of this person that still lasts is there."""
    rows = _lasting(request, _RUN).filter(project_id=run.project_id, detail__run=str(run.pk))
    if not rows.exists():
        audit_run_look(request, run)


def _lasting(request: HttpRequest, action: str) -> QuerySet[AuditEvent, Any]:
    now = clock.now()
    # A look that a clock ahead dated into the future must not last until then.
    return AuditEvent.objects.filter(
        action=action, actor=actor_of(request), created_at__range=(now - LOOK_LASTS, now)
    ).order_by()
