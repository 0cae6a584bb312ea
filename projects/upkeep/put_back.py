"""Puts moments right that were written while the clock was ahead.

A clock that was an hour ahead and is put back leaves times that lie an hour too far away: a code is
good for an hour too long, a message goes out an hour late, a host that is gone counts as online.
Two things tell such a row: it began in the future, or its moment is further away than any that is
written now. ``clock.JUMP_SECONDS`` is the error that is let through. Leases that another row or
process looks after are judged where they are read (``clock.is_of_another_time``).
"""

import time
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, Final, NamedTuple

from django.db import transaction
from django.db.models import F, Model, Q, QuerySet

from projects.attention.messages import LONGEST_PAUSE_SECONDS
from projects.conf import conf
from projects.models import (
    Approval,
    AttentionEvent,
    AttentionMessage,
    CommandSession,
    Controller,
    ControllerCommand,
    ControllerCredential,
    EnrolmentCode,
    FileRequest,
    HeldKeyboard,
)
from projects.monitors.questions import ANSWER_SECONDS
from projects.sessions.selectors import IS_ACTIVE
from projects.storage import clock

# A clock that a round has not seen jump may have been put back before this process began.
ROUND_SECONDS: Final = 60.0
_MOST_AT_ONCE: Final = 500
_Answer: Final = Approval.Answer
_DUE: Final = Q(due_at__isnull=False)


class _Beginning(NamedTuple):
    """Rows whose other ``moments`` count from ``began``: all of them move together."""

    rows: "QuerySet[Any]"
    began: str
    moments: tuple[str, ...]


class _Bound(NamedTuple):
    """Rows whose ``moment`` is never written further away than ``longest`` from now."""

    rows: "QuerySet[Any]"
    moment: str
    longest: timedelta = timedelta()


def _beginnings() -> Iterable[_Beginning]:
    codes = EnrolmentCode.objects.filter(revoked_at__isnull=True)
    unsent = ControllerCommand.objects.filter(settled_at__isnull=True, expires_at__isnull=False)
    return (
        _Beginning(codes, "created_at", ("expires_at",)),
        _Beginning(unsent, "created_at", ("expires_at",)),
        _Beginning(AttentionEvent.objects.filter(_DUE), "raised_at", ("due_at", "snoozed_until")),
        _Beginning(AttentionMessage.objects.filter(_DUE), "created_at", ("began_at", "due_at")),
    )


def _bounds() -> Iterable[_Bound]:
    open_or_good = Approval.objects.filter(answer__in=(_Answer.PENDING, _Answer.APPROVED))
    hosts = Controller.objects.filter(revoked_at__isnull=True)
    keys = ControllerCredential.objects.filter(revoked_at__isnull=True)
    sessions = CommandSession.objects.filter(IS_ACTIVE)
    messages = AttentionMessage.objects.filter(_DUE)
    answer = timedelta(seconds=ANSWER_SECONDS + conf.max_wait_seconds)
    return (
        _Bound(open_or_good, "expires_at", timedelta(seconds=conf.approval_seconds)),
        _Bound(hosts, "lease_expires_at", timedelta(seconds=conf.lease_seconds)),
        _Bound(keys, "expires_at", ControllerCredential.OVERLAP),
        _Bound(messages, "due_at", timedelta(seconds=LONGEST_PAUSE_SECONDS)),
        _Bound(FileRequest.objects.all(), "expires_at", answer),
        _Bound(sessions, "touched_at"),
        _Bound(HeldKeyboard.objects.all(), "seen_at"),
        _Bound(HeldKeyboard.objects.all(), "typed_at"),
    )


@dataclass
class PutBack:
    """Looks for such rows, now and then: always after the clock was put back."""

    _looked_at: float | None = field(default=None, init=False)

    def moments(self) -> int:
        """Runs one round if it is time for one. Returns the number of rows put right."""
        moment, step = time.monotonic(), clock.STEADINESS.step_of_last(ROUND_SECONDS)
        if self._looked_at is not None and step >= 0 and moment - self._looked_at < ROUND_SECONDS:
            return 0
        self._looked_at = moment
        return moments_put_back()


def moments_put_back() -> int:
    """Runs one round over all kinds of rows. Returns the number of rows put right."""
    # If this process's own clock was put back a moment ago, the database's was not.
    clock.measure()
    now = clock.now()
    begun = sum(_move(beginning, now) for beginning in _beginnings())
    return begun + sum(_shorten(bound, now) for bound in _bounds())


@transaction.atomic
def _move(beginning: _Beginning, now: datetime) -> int:
    rows, began, moments = beginning
    too_far = {f"{began}__gt": now + timedelta(seconds=clock.JUMP_SECONDS)}
    ahead: list[Model] = list(rows.filter(**too_far).order_by(began)[:_MOST_AT_ONCE])
    for row in ahead:
        by = getattr(row, began) - now
        # An empty moment stays empty.
        earlier = {name: F(name) - by for name in moments}
        rows.filter(pk=row.pk, **too_far).update(**earlier, **{began: now})
    return len(ahead)


def _shorten(bound: _Bound, now: datetime) -> int:
    rows, moment, longest = bound
    too_far = now + longest + timedelta(seconds=clock.JUMP_SECONDS)
    ahead = rows.filter(**{f"{moment}__gt": too_far})
    # Nothing is written in most rounds.
    return ahead.update(**{moment: now + longest}) if ahead.exists() else 0
