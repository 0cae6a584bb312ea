"""Rows that stay unsigned while other chains are signed are a fault, and say so."""

from datetime import timedelta
from io import StringIO
from uuid import UUID

import pytest
from django.core.management import CommandError, call_command
from django.db.models import F

from projects.audit.log import SERVER, audit
from projects.audit.marks import heads_sign
from projects.audit.proof import audit_verify
from projects.models import AuditEvent, AuditMark, Project
from projects.storage import clock
from tests.support.running.append_only import triggers_lifted

pytestmark = pytest.mark.django_db(transaction=True)

LONG = timedelta(hours=1)


@pytest.fixture
def project_id() -> UUID:
    """A project with rows, beside another one."""
    other: UUID = Project.objects.create(name="other").id
    made: UUID = Project.objects.create(name="acme").id
    for chain in (made, other, SERVER):
        audit("token:x", "session.start", (None if chain == SERVER else chain, None, None))
    return made


def _age_marks() -> None:
    """Let the marks be so old that every round has signed everything since."""
    with triggers_lifted():
        AuditMark.objects.update(created_at=F("created_at") - LONG)


def _age_rows(project_id: UUID, age: timedelta) -> None:
    """Write the chain anew, as the owner of the database, with rows of that age."""
    with triggers_lifted():
        times = AuditEvent.objects.filter(project_id=project_id)
        newest = times.order_by("-seq").values_list("created_at", flat=True)[0]
        times.delete()
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(clock, "now", lambda: newest - age)
            audit(
                "nobody",
                "session.start",
                (None if project_id == SERVER else project_id, None, None),
            )


def _lose_marks(project_id: UUID) -> None:
    with triggers_lifted():
        AuditMark.objects.filter(project_id=project_id).delete()


def _codes(project_id: UUID) -> list[bool]:
    return ["NO_SIGNED_HEAD" in problem for problem in audit_verify(project_id).problems]


@pytest.mark.parametrize("age", [timedelta(0), 3 * LONG])
def test_the_servers_own_chain_rewritten_without_its_marks_is_broken(
    project_id: UUID, age: timedelta
) -> None:
    heads_sign(timedelta(0))
    _age_marks()
    assert audit_verify(SERVER).problems == ()
    _age_rows(SERVER, age)
    _lose_marks(SERVER)
    assert _codes(SERVER) == [True]
    out = StringIO()
    with pytest.raises(CommandError):
        call_command("verify_audit", stdout=out)
    assert "(server): BROKEN, 1 rows" in out.getvalue()


def test_a_chain_that_was_passed_over_is_broken(project_id: UUID) -> None:
    _age_rows(project_id, 3 * LONG)
    heads_sign(timedelta(0))
    _age_marks()
    assert audit_verify(project_id).problems == ()
    _lose_marks(project_id)
    _lose_marks(SERVER)
    with triggers_lifted():
        AuditEvent.objects.filter(project_id=SERVER).delete()
    assert _codes(project_id) == [True]
    # The last rows of a deleted project are never signed.
    Project.objects.filter(id=project_id).delete()
    assert _codes(project_id) == []


def test_the_end_of_the_servers_chain_that_lost_its_marks_is_broken(
    project_id: UUID, monkeypatch: pytest.MonkeyPatch
) -> None:
    heads_sign(timedelta(0))
    now = clock.now()
    with monkeypatch.context() as patch:
        patch.setattr(clock, "now", lambda: now - 3 * LONG)
        audit("nobody", "login.failed", (None, None, None))
    audit("token:x", "session.start", (project_id, None, None))
    heads_sign(timedelta(0))
    _age_marks()
    assert audit_verify(SERVER).problems == ()
    with triggers_lifted():
        AuditMark.objects.filter(project_id=SERVER, seq__gt=2).delete()
    (problem,) = audit_verify(SERVER).problems
    assert problem.startswith("rows from 3 on are not signed")


def test_rows_that_no_server_has_signed_yet_are_no_fault(project_id: UUID) -> None:
    # Heads are fresh, or there are none: no round was missed.
    assert _codes(project_id) == _codes(SERVER) == []
    heads_sign(timedelta(0))
    audit("token:x", "session.start", (project_id, None, None))
    assert _codes(project_id) == _codes(SERVER) == []
    assert not audit_verify(project_id).is_unsigned


def test_heads_that_a_log_names_vouch_for_a_chain_without_marks(project_id: UUID) -> None:
    _age_rows(project_id, 3 * LONG)
    (head,) = AuditEvent.objects.filter(project_id=project_id).values_list("seq", "hash")
    assert audit_verify(project_id).is_unsigned
    assert not audit_verify(project_id, {project_id: {head}}).is_unsigned


def test_a_log_without_any_mark_is_called_unsigned_and_not_whole(project_id: UUID) -> None:
    for chain in (project_id, SERVER):
        _age_rows(chain, 3 * LONG)
    out = StringIO()
    call_command("verify_audit", stdout=out)
    lines = out.getvalue().splitlines()
    assert "acme: unsigned, 1 rows, 0 expired, 0 signed heads" in lines
    assert "(server): unsigned, 1 rows, 0 expired, 0 signed heads" in lines
    # Its rows are younger than a round.
    assert "other: whole, 1 rows, 0 expired, 0 signed heads" in lines
    assert sum("NO_SIGNED_HEAD" in line for line in lines) == 2
    heads_sign(timedelta(0))
    call_command("verify_audit", stdout=(out := StringIO()))
    assert "unsigned" not in out.getvalue()
