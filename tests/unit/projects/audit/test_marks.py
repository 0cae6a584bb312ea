"""Signed heads: attempts to prevent them or to remove their proof, and how each is found."""

import logging
from datetime import timedelta
from io import StringIO
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4

import pytest
from django.core.management import CommandError, call_command
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from projects.audit.log import GENESIS, SERVER, audit, hash_of
from projects.audit.marks import Signer, heads_sign, marks_resign
from projects.audit.proof import (
    audit_expire,
    audit_verify,
    chains,
    entry_of,
    marks_acknowledge,
)
from projects.models import ApiToken, AuditEvent, AuditMark, Project
from tests.support.running.append_only import triggers, triggers_lifted

pytestmark = pytest.mark.django_db(transaction=True)

NO_TIME = timedelta(0)
NEW_KEY = "MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTIzNDU2Nzg5MDE="


@pytest.fixture
def project_id() -> UUID:
    """A project with three rows."""
    made: UUID = Project.objects.create(name="acme").id
    _act(made, 3)
    return made


def _act(project_id: UUID, times: int = 1) -> None:
    for _ in range(times):
        audit("token:x", "session.start", (project_id, None, None))


def _remove(project_id: UUID, *, rows_from: int = 1, marks_from: int = 1) -> None:
    """As the owner of the database removes the end of a chain."""
    with triggers_lifted():
        AuditEvent.objects.filter(project_id=project_id, seq__gte=rows_from).delete()
        AuditMark.objects.filter(project_id=project_id, seq__gte=marks_from).delete()


def _rewrite(project_id: UUID, seq: int) -> None:
    """As the owner of the database changes a row and computes the rest of the chain anew."""
    with triggers_lifted():
        rows = list(AuditEvent.objects.filter(project_id=project_id).order_by("seq"))
        previous = GENESIS
        for row in rows:
            if row.seq >= seq:
                row.actor = "nobody" if row.seq == seq else row.actor
                row.hash = hash_of(previous, entry_of(row))
                row.save()
            previous = row.hash


def _insert(project_id: UUID, seq: int, **changes: Any) -> None:
    values = {"kind": "head", "hash": "0" * 64, "signature": "0" * 64, **changes}
    AuditMark.objects.create(project_id=project_id, seq=seq, **values)


# ---- what would silence signing ------------------------------------------------------------------


@pytest.mark.parametrize("seqs", [[1_000_000_000], [3], [4], [2, 3, 4, 5, 6], list(range(1, 60))])
def test_marks_that_are_not_ours_silence_no_signing(project_id: UUID, seqs: list[int]) -> None:
    for seq in seqs:
        _insert(project_id, seq)
    assert heads_sign(NO_TIME) == 2
    _act(project_id)
    assert heads_sign(NO_TIME) == 2
    verdict = audit_verify(project_id)
    assert verdict.signed == 2
    assert len(verdict.problems) == len(seqs)
    assert all("is not ours" in problem for problem in verdict.problems)


def test_many_marks_behind_one_row_do_not_either(project_id: UUID) -> None:
    for number in range(100):
        _insert(project_id, 3, signature=f"{number:064x}")
    assert heads_sign(timedelta(hours=1)) == 2
    _act(project_id)
    assert heads_sign(NO_TIME) == 2


def test_marks_that_are_not_ours_are_logged_once(
    project_id: UUID, caplog: pytest.LogCaptureFixture
) -> None:
    signer = Signer()
    _insert(project_id, 1_000_000_000)
    for _ in range(2):
        signer.sign(NO_TIME)
    said = [record.getMessage() for record in caplog.records if record.levelno >= logging.ERROR]
    assert said == [
        (
            f"audit log of project {project_id}: 1 marks are not ours, the first at row "
            "1000000000 (manage.py verify_audit)"
        )
    ]


def test_where_nothing_is_to_be_signed_no_writer_is_kept_waiting(project_id: UUID) -> None:
    signer = Signer()
    assert signer.sign(NO_TIME) == 2
    with CaptureQueriesContext(connection) as queries:
        assert signer.sign(timedelta(hours=1)) == 0
    assert queries.captured_queries
    assert [
        query["sql"] for query in queries.captured_queries if query["sql"].startswith("BEGIN")
    ] == []


def test_a_clock_that_ran_ahead_once_stops_no_signing(
    project_id: UUID, monkeypatch: pytest.MonkeyPatch
) -> None:
    heads_sign(NO_TIME)
    with triggers_lifted():
        AuditMark.objects.update(created_at=timezone.now() + timedelta(days=300))
    _act(project_id)
    assert heads_sign(timedelta(hours=1)) == 2
    _act(project_id)
    assert heads_sign(timedelta(hours=1)) == 0


# ---- keys ----------------------------------------------------------------------------------------


def test_a_change_of_the_key_leaves_every_chain_whole(project_id: UUID, settings: Any) -> None:
    heads_sign(NO_TIME)
    audit_expire(project_id, timezone.now(), actor="sweeper")
    old = list(settings.ENCRYPTION_KEYS)
    settings.ENCRYPTION_KEYS = [NEW_KEY, *old]
    out = StringIO()
    call_command("reseal_secrets", stdout=out)
    assert "3 marks of the audit log are signed with the newest key" in out.getvalue()
    settings.ENCRYPTION_KEYS = [NEW_KEY]
    assert [audit_verify(each).problems for each in chains()] == [(), ()]
    _act(project_id)
    assert heads_sign(NO_TIME) == 2
    assert [audit_verify(each).problems for each in chains()] == [(), ()]
    _remove(project_id, rows_from=4, marks_from=5)
    assert audit_verify(project_id).problems == ("rows to 5 were signed, the log ends at row 3",)


def test_resigning_is_repeatable_and_never_signs_foreign_marks(
    project_id: UUID, settings: Any
) -> None:
    heads_sign(NO_TIME)
    _insert(project_id, 2)
    settings.ENCRYPTION_KEYS = [NEW_KEY, *settings.ENCRYPTION_KEYS]
    assert marks_resign() == (2, 1)
    assert marks_resign() == (0, 1)
    settings.ENCRYPTION_KEYS = [NEW_KEY]
    assert audit_verify(project_id).problems == ("the signature of the head at row 2 is not ours",)
    errors = StringIO()
    call_command("reseal_secrets", stdout=StringIO(), stderr=errors)
    assert "3 marks of the audit log were signed with none of the keys" in errors.getvalue()


def test_an_acknowledged_foreign_mark_fails_nothing_and_proves_nothing(
    project_id: UUID,
) -> None:
    foreign = {"project_id": project_id, "hash": "0" * 64}
    for number in range(2):
        AuditMark.objects.create(**foreign, kind="head", seq=2, signature=f"{number}" * 64)
    assert len(audit_verify(project_id).problems) == 2
    call_command("acknowledge_marks", reason="a restored copy", stdout=StringIO())
    verdict = audit_verify(project_id)
    assert (verdict.problems, verdict.acknowledged, verdict.signed) == ((), 2, 0)
    row = AuditEvent.objects.get(project_id=project_id, action="audit.acknowledge")
    assert row.actor.startswith("cli:")
    assert row.detail["reason"] == "a restored copy"
    call_command("acknowledge_marks", reason="again", stdout=StringIO())
    assert AuditEvent.objects.filter(action="audit.acknowledge").count() == 1
    AuditMark.objects.create(**foreign, kind="expiry", seq=3, signature="3" * 64)
    assert len(audit_verify(project_id).problems) == 1
    call_command("acknowledge_marks", reason="an expiry", stdout=StringIO())
    with triggers_lifted():
        AuditEvent.objects.filter(project_id=project_id, seq=1).delete()
    assert audit_verify(project_id).problems == ("rows 1 to 1 are missing",)


@pytest.mark.parametrize("reason", ["", "  ", "\n"])
def test_marks_are_not_acknowledged_without_a_reason(project_id: UUID, reason: str) -> None:
    _insert(project_id, 2)
    with pytest.raises(CommandError, match="--reason"):
        call_command("acknowledge_marks", reason=reason)
    assert not AuditEvent.objects.filter(action="audit.acknowledge").exists()
    assert len(audit_verify(project_id).problems) == 1


def _expire_all(chain: UUID) -> None:
    """As retention does, until only the newest rows are left."""
    audit("a", "b", (chain, None, None))
    assert audit_expire(chain, timezone.now(), actor="retention")


def test_an_acknowledged_mark_stays_so_when_the_row_expires(project_id: UUID) -> None:
    _insert(project_id, 2)
    marks_acknowledge(project_id, actor="cli:ada", reason="a restored copy")
    for _ in range(2):
        _expire_all(project_id)
        verdict = audit_verify(project_id)
        assert (verdict.problems, verdict.acknowledged) == ((), 1)
    row = AuditEvent.objects.get(project_id=project_id, action="audit.acknowledge")
    assert (row.detail["by"], row.detail["reason"]) == ("cli:ada", "a restored copy")


def test_a_removed_quiet_chain_is_found_though_its_repetition_expired(project_id: UUID) -> None:
    heads_sign(NO_TIME)
    _act(busy := Project.objects.create(name="busy").id)
    for _ in range(3):
        _act(busy)
        heads_sign(NO_TIME)
    _expire_all(SERVER)
    _expire_all(SERVER)
    repeated = AuditEvent.objects.filter(project_id=SERVER, action="audit.heads")
    known = [chain for row in repeated for chain in row.detail["heads"]]
    assert sorted(known) == sorted(map(str, (project_id, busy)))
    assert audit_verify(project_id).problems == ()
    _remove(project_id)
    assert audit_verify(project_id).problems == ("rows to 3 were signed, the log ends at row 0",)


def test_a_key_that_went_too_early_stops_no_signing(project_id: UUID, settings: Any) -> None:
    heads_sign(NO_TIME)
    settings.ENCRYPTION_KEYS = [NEW_KEY]
    _act(project_id)
    assert heads_sign(timedelta(hours=1)) == 2
    assert audit_verify(project_id).problems == ("the signature of the head at row 3 is not ours",)


# ---- what is found without marks -----------------------------------------------------------------


def test_a_removed_end_is_found_though_its_marks_went_with_it(project_id: UUID) -> None:
    heads_sign(NO_TIME)
    _act(project_id, 2)
    heads_sign(NO_TIME)
    _remove(project_id, rows_from=4, marks_from=4)
    assert audit_verify(project_id).problems == ("rows to 5 were signed, the log ends at row 3",)


def test_a_removed_chain_is_found_though_its_marks_went_with_it(project_id: UUID) -> None:
    heads_sign(NO_TIME)
    _remove(project_id)
    assert audit_verify(project_id).problems == ("rows to 3 were signed, the log ends at row 0",)
    out = StringIO()
    with pytest.raises(CommandError, match="1 of 2"):
        call_command("verify_audit", stdout=out)
    assert "acme: BROKEN, 0 rows, 0 expired, 0 signed heads" in out.getvalue()
    Project.objects.all().delete()
    assert project_id in chains()


def test_a_rewritten_chain_is_found_though_its_marks_went(project_id: UUID) -> None:
    heads_sign(NO_TIME)
    _rewrite(project_id, 2)
    _remove(project_id, rows_from=4, marks_from=1)
    assert audit_verify(project_id).problems == ("row 3 is not the one that was signed",)


def test_an_unsigned_removed_chain_is_betrayed_by_the_rows_it_recorded(project_id: UUID) -> None:
    ApiToken.objects.create(
        project_id=project_id, name="x", key_id=uuid4().hex[:12], digest="0" * 64
    )
    _remove(project_id)
    assert audit_verify(project_id).problems == (
        "there are no rows, though the project has tokens or sessions",
    )


def test_every_project_is_listed_and_one_that_did_nothing_is_whole() -> None:
    quiet = Project.objects.create(name="quiet").id
    assert set(chains()) == {SERVER, quiet}
    assert audit_verify(quiet).problems == ()


def test_an_end_that_goes_everywhere_is_found_by_the_servers_log(
    project_id: UUID, caplog: pytest.LogCaptureFixture, tmp_path: Path
) -> None:
    heads_sign(NO_TIME)
    with caplog.at_level(logging.INFO):
        _act(project_id)
        heads_sign(NO_TIME)
    _remove(project_id, rows_from=4, marks_from=4)
    _remove(SERVER, rows_from=2, marks_from=2)
    assert [audit_verify(each).problems for each in chains()] == [(), ()]
    log = tmp_path / "server.log"
    log.write_text("\n".join(f'{{"event": "{record.getMessage()}"}}' for record in caplog.records))
    out = StringIO()
    with pytest.raises(CommandError, match="2 of 2"):
        call_command("verify_audit", logs=[log], stdout=out)
    assert "  rows to 4 were signed, the log ends at row 3" in out.getvalue().splitlines()
    assert "  rows to 2 were signed, the log ends at row 1" in out.getvalue().splitlines()
    with pytest.raises(CommandError, match="cannot be read"):
        call_command("verify_audit", logs=[tmp_path / "missing"], stdout=out)


@pytest.mark.parametrize("is_removed", [True, False])
def test_a_server_that_runs_notices_a_change_behind_its_last_head(
    project_id: UUID, is_removed: bool, caplog: pytest.LogCaptureFixture
) -> None:
    signer = Signer()
    signer.sign(NO_TIME)
    if is_removed:
        _remove(project_id, rows_from=3, marks_from=3)
    else:
        _rewrite(project_id, 2)
    signer.sign(NO_TIME)
    said = [record.getMessage() for record in caplog.records if record.levelno >= logging.ERROR]
    assert said == [
        (
            f"audit log of project {project_id} was changed: row 3 is not the one that was signed "
            "(manage.py verify_audit)"
        )
    ]


def test_expiry_is_no_change(project_id: UUID, caplog: pytest.LogCaptureFixture) -> None:
    signer = Signer()
    signer.sign(NO_TIME)
    _act(project_id)
    audit_expire(project_id, timezone.now(), actor="sweeper")
    signer.sign(NO_TIME)
    assert [record for record in caplog.records if record.levelno >= logging.ERROR] == []
    assert [audit_verify(each).problems for each in chains()] == [(), ()]


def test_heads_of_many_projects_are_repeated_in_rows_of_bounded_size() -> None:
    for number in range(150):
        _act(Project.objects.create(name=f"p{number}").id)
    assert heads_sign(NO_TIME) == 151
    rows = AuditEvent.objects.filter(project_id=SERVER, action="audit.heads").order_by("seq")
    assert [len(row.detail["heads"]) for row in rows] == [100, 50]
    assert [audit_verify(each).problems for each in chains()] == [()] * 151


@pytest.mark.sqlite
def test_the_triggers_are_all_there_after_the_table_of_marks_was_made_anew(
    project_id: UUID,
) -> None:
    assert triggers() == frozenset(
        f"audit_{table}_is_not_{what}"
        for table in ("event", "mark")
        for what in ("changed", "deleted", "replaced")
    )
