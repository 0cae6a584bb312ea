"""Heads that a restore lost are put on record, and are no manipulation then."""

from uuid import UUID

import pytest
from django.utils import timezone

from projects.audit.log import SERVER, audit
from projects.audit.lost import heads_lose
from projects.audit.proof import audit_expire, audit_verify
from projects.models import AuditEvent

pytestmark = pytest.mark.django_db


def _three_rows() -> dict[UUID, set[tuple[int, str]]]:
    """Writes three rows; returns the head of the first, and one that a restore has lost."""
    for _ in range(3):
        audit("a", "b", (None, None, None))
    first = AuditEvent.objects.get(project_id=SERVER, seq=1)
    return {SERVER: {(1, first.hash), (3, "0" * 64), (9, "1" * 64)}}


def test_a_head_that_is_gone_is_a_problem_until_it_is_on_record() -> None:
    known = _three_rows()
    assert len(audit_verify(SERVER, known).problems) == 2
    heads_lose(known, actor="cli:admin")
    verdict = audit_verify(SERVER, known)
    assert (verdict.problems, verdict.lost) == ((), 2)
    (row,) = AuditEvent.objects.filter(action="audit.lost")
    assert row.detail == {"heads": [[3, "0" * 64], [9, "1" * 64]]}


def test_a_second_confirmation_writes_nothing_more() -> None:
    known = _three_rows()
    heads_lose(known, actor="cli:admin")
    heads_lose(known, actor="cli:admin")
    assert AuditEvent.objects.filter(action="audit.lost").count() == 1


def test_a_lost_head_stays_on_record_when_the_row_expires() -> None:
    known = _three_rows()
    heads_lose(known, actor="cli:admin")
    audit("a", "b", (None, None, None))
    for _ in range(2):
        audit_expire(SERVER, timezone.now(), actor="retention")
        assert audit_verify(SERVER, known).problems == ()
    (row,) = AuditEvent.objects.filter(action="audit.lost")
    assert (row.actor, row.detail["by"]) == ("retention", "cli:admin")
    assert row.detail["heads"] == [[3, "0" * 64], [9, "1" * 64]]


def test_a_head_that_is_not_on_record_stays_a_problem() -> None:
    known = _three_rows()
    heads_lose(known, actor="cli:admin")
    verdict = audit_verify(SERVER, {SERVER: {*known[SERVER], (8, "2" * 64)}})
    assert len(verdict.problems) == 1
