"""The suspension of all that a restore brings back, and its end when an administrator confirms.

The backup does not know what was revoked, used or changed after it was made. So nobody acts on what
it brings back: tokens are refused, nobody logs in, and whatever waited for an answer is stopped.
"""

from collections.abc import Iterable
from datetime import datetime
from typing import Any, Final

from django.contrib.auth import get_user_model
from django.contrib.sessions.models import Session
from django.db import transaction
from django.db.models import F, Q, QuerySet

from agent.models import AgentRun
from agent.services import OVER, run_stop
from console.models import SecondFactor
from projects.audit.log import audit
from projects.audit.lost import heads_lose
from projects.audit.marks import Heads
from projects.models import (
    ApiToken,
    Approval,
    AttentionTarget,
    CommandSession,
    Controller,
    EnrolmentCode,
    HeldKeyboard,
    Restore,
    Secret,
)
from projects.sessions.approvals.answering import approvals_withdraw
from projects.sessions.selectors import ACTIVE
from projects.sessions.transactions.control import hand_back
from projects.storage import clock

_NOTE: Final = "handed back by itself: the database was restored"


@transaction.atomic
def suspend(*, made_at: datetime, release: str, actor: str) -> Restore:
    """Record a restore from a backup of ``made_at``, and suspend what the backup brought back."""
    now = clock.now()
    restore = Restore.objects.create(
        at=now, backup_made_at=made_at, backup_release=release, actor=actor
    )
    counts = {
        "tokens": _valid_tokens().filter(suspended_at__isnull=True).update(suspended_at=now),
        "logins": Session.objects.all().delete()[0],
        "codes": _open_codes().update(revoked_at=now),
        # Each works once, and may have been used since the backup.
        "recovery_codes_of": SecondFactor.objects.exclude(recovery=[]).update(recovery=[]),
        "keyboards": _hand_back_keyboards(),
        "approvals": Approval.objects.filter(answer=Approval.Answer.PENDING).count(),
        "runs": _stop_runs(actor),
    }
    # A question that was open may have been answered, and the call made, since the backup.
    approvals_withdraw(Q(), actor=actor)
    detail = {"backup_of": made_at.isoformat(), "release": release, "suspended": counts}
    audit(actor, "restore", (None, None, None), detail)
    return restore


def _valid_tokens() -> QuerySet[ApiToken]:
    return ApiToken.objects.filter(revoked_at__isnull=True)


def _open_codes() -> QuerySet[EnrolmentCode]:
    is_open = Q(used_at__isnull=True) | Q(enrolled__lt=F("hosts"))
    return EnrolmentCode.objects.filter(is_open, revoked_at__isnull=True)


def _hand_back_keyboards() -> int:
    """Hand all keyboards back, also those that were not taken at a browser."""
    taken = list(CommandSession.objects.filter(state__in=ACTIVE).exclude(taken_over_by=""))
    for session in taken:
        hand_back(session.project_id, session.id, session.taken_over_by, _NOTE)
    # What is left is of sessions that are over.
    HeldKeyboard.objects.all().delete()
    return len(taken)


def _stop_runs(actor: str) -> int:
    """Stop all agent runs: their open approvals may have been used since the backup."""
    active = AgentRun.objects.exclude(state__in=OVER)
    # No worker of before is left to stop a run for itself.
    active.update(lease=None, lease_expires_at=None)
    runs = list(active.values_list("id", flat=True))
    for run_id in runs:
        run_stop(run_id=run_id, actor=actor)
    return len(runs)


# ---- confirmation --------------------------------------------------------------------------------


def unconfirmed() -> Restore | None:
    """The newest restore that nobody has confirmed; None if there is none."""
    return Restore.objects.filter(confirmed_at__isnull=True).order_by("-id").first()


def brought_back() -> dict[str, list[str]]:
    """All that counts again once the restore is confirmed: names by kind, to be read."""
    users = get_user_model().objects.filter(is_active=True)
    tokens = _valid_tokens().filter(suspended_at__isnull=False).select_related("project")
    hosts = Controller.objects.filter(revoked_at__isnull=True).select_related("project")
    return {
        "tokens": [f"{row.project.name}: {row.name} ({row.key_id})" for row in tokens],
        "users": [
            _described(row) for row in users.select_related("second_factor").order_by("username")
        ],
        "hosts": [f"{row.project.name}/{row.name}" for row in hosts],
        "attention targets": [
            f"{row.project.name}: {row.name} ({row.place})"
            for row in AttentionTarget.objects.select_related("project").order_by("project__name")
        ],
        "secrets": [
            f"{row.project.name}: {row.name}"
            for row in Secret.objects.select_related("project").order_by("project__name", "name")
        ],
    }


def _described(user: Any) -> str:
    factor = getattr(user, "second_factor", None)
    is_on = factor is not None and factor.confirmed_at is not None
    marks = ["superuser"] * user.is_superuser + ["second factor"] * is_on
    return str(user.get_username()) + f" ({', '.join(marks)})" * bool(marks)


@transaction.atomic
def confirm(*, actor: str, heads: Iterable[Heads] = ()) -> int:
    """End the suspension. Returns the number of tokens that are valid again.

    ``heads`` are signed heads of the audit log that are known from elsewhere. Those that are not in
    the restored log are put on record as lost.
    """
    now = clock.now()
    tokens = ApiToken.objects.filter(suspended_at__isnull=False).update(suspended_at=None)
    Restore.objects.filter(confirmed_at__isnull=True).update(confirmed_at=now, confirmed_by=actor)
    audit(actor, "restore.confirm", (None, None, None), {"tokens": tokens})
    for known in heads:
        heads_lose(known, actor=actor)
    return tokens
