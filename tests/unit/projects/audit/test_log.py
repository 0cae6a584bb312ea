"""Audit rows: chained, written in the action's transaction, and refused to be changed."""

import json
import sqlite3
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from datetime import timedelta
from io import StringIO
from uuid import UUID, uuid4

import pytest
from django.core.management import CommandError, call_command
from django.db import DatabaseError, connection, transaction
from django.utils import timezone

from projects.audit import proof
from projects.audit.log import GENESIS, SERVER, audit, hash_of
from projects.audit.marks import heads_sign
from projects.audit.proof import audit_expire, audit_export, audit_verify, chains, entry_of
from projects.models import AuditEvent, AuditMark, Project
from projects.storage import clock
from tests.support.running.append_only import TABLES, triggers_lifted

pytestmark = pytest.mark.django_db(transaction=True)

NO_TIME = timedelta(0)


@pytest.fixture
def project_id() -> UUID:
    """A project with three rows."""
    made: UUID = Project.objects.create(name="acme").id
    for number in range(3):
        audit(
            f"token:{number}",
            "session.start",
            (made, uuid4(), uuid4()),
            {"command": f"é\u202e {number}", "env": ["B", "A"], "z": None},
        )
    return made


def test_rows_are_numbered_and_chained_per_project(project_id: UUID) -> None:
    audit("operator", "login.failed", (None, None, None))
    first, second, third = AuditEvent.objects.filter(project_id=project_id).order_by("seq")
    assert [first.seq, second.seq, third.seq] == [1, 2, 3]
    assert first.hash == hash_of(GENESIS, entry_of(first))
    assert third.hash == hash_of(second.hash, entry_of(third))
    assert AuditEvent.objects.get(project_id=SERVER).seq == 1
    verdict = audit_verify(project_id)
    assert (verdict.rows, verdict.problems) == (3, ())


@pytest.mark.usefixtures("days_ahead")
def test_rows_have_the_time_that_all_servers_agree_on(project_id: UUID) -> None:
    heads_sign(NO_TIME)
    for model in (AuditEvent, AuditMark):
        rows = model.objects.filter(project_id=project_id)
        assert rows.exists()
        assert not rows.filter(created_at__gt=clock.now()).exists()


def test_what_a_database_would_change_or_refuse_is_a_row_that_verifies(project_id: UUID) -> None:
    odd = {"to": 1e16, "from": [-0.0, {"much": 1e300}], "nul\0": "a\0b", "half": "\ud800"}
    audit("nul\0", "session.black_out", (project_id, None, None), odd)
    row = AuditEvent.objects.filter(project_id=project_id).latest("seq")
    assert (row.actor, row.detail) == (
        "nul\N{SYMBOL FOR NULL}",
        {
            "to": "1e+16",
            "from": ["-0.0", {"much": "1e+300"}],
            "nul\N{SYMBOL FOR NULL}": "a\N{SYMBOL FOR NULL}b",
            "half": "?",
        },
    )
    assert audit_verify(project_id).problems == ()


def test_an_action_that_fails_leaves_no_row_and_no_hole(project_id: UUID) -> None:
    def act() -> None:
        audit("x", "y", (project_id, None, None))
        raise RuntimeError

    with pytest.raises(RuntimeError):
        transaction.atomic(act)()
    audit("x", "y", (project_id, None, None))
    verdict = audit_verify(project_id)
    assert (verdict.rows, verdict.problems) == (4, ())


def test_the_database_refuses_to_change_remove_or_replace_a_row(project_id: UUID) -> None:
    heads_sign(NO_TIME)
    statements = [f"UPDATE {table} SET hash = 'x'" for table in TABLES] + [
        f"DELETE FROM {table}" for table in TABLES
    ]
    if connection.vendor == "sqlite":
        statements.append(
            "INSERT OR REPLACE INTO projects_auditevent SELECT * FROM projects_auditevent"
        )
        statements.append(
            "INSERT OR REPLACE INTO projects_auditmark SELECT * FROM projects_auditmark"
        )
    else:
        statements += [f"TRUNCATE {table}" for table in TABLES]
    for statement in statements:
        with (
            pytest.raises(DatabaseError, match="append-only"),
            transaction.atomic(),
            connection.cursor() as cursor,
        ):
            cursor.execute(statement)
    assert audit_verify(project_id).rows == 3


@pytest.mark.sqlite
def test_it_refuses_also_whoever_opens_the_file_without_us(project_id: UUID) -> None:
    with closing(sqlite3.connect(str(connection.settings_dict["NAME"]), timeout=20)) as stranger:
        with pytest.raises(sqlite3.DatabaseError, match="append-only"):
            stranger.execute("UPDATE projects_auditevent SET actor = 'nobody'")
        with pytest.raises(sqlite3.DatabaseError, match="append-only"):
            stranger.execute("DELETE FROM projects_auditevent")
    assert audit_verify(project_id).rows == 3


def _problems(project_id: UUID, statement: str) -> tuple[str, ...]:
    """The problems that verification finds after ``statement`` changed rows 1, 2, 3."""
    with triggers_lifted(), connection.cursor() as cursor:
        cursor.execute(statement)
    return audit_verify(project_id).problems


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        (
            "UPDATE projects_auditevent SET actor = 'nobody' WHERE seq = 2",
            "row 2 is not what was written",
        ),
        (
            "UPDATE projects_auditevent SET detail = '{}' WHERE seq = 1",
            "row 1 is not what was written",
        ),
        (
            "UPDATE projects_auditevent SET session_id = NULL WHERE seq = 3",
            "row 3 is not what was written",
        ),
        ("DELETE FROM projects_auditevent WHERE seq = 2", "rows 2 to 2 are missing"),
        ("DELETE FROM projects_auditevent WHERE seq = 1", "rows 1 to 1 are missing"),
        (
            "DELETE FROM projects_auditevent WHERE seq = 3",
            "rows to 3 were signed, the log ends at row 2",
        ),
        ("DELETE FROM projects_auditevent", "rows to 3 were signed, the log ends at row 0"),
        (
            "UPDATE projects_auditmark SET signature = 'x'",
            "the signature of the head at row 3 is not ours",
        ),
    ],
)
def test_verification_finds_what_was_done_behind_its_back(
    project_id: UUID, change: str, problem: str
) -> None:
    assert heads_sign(NO_TIME) == 2
    assert audit_verify(project_id).problems == ()
    assert problem in _problems(project_id, change)


def test_a_chain_that_was_computed_anew_is_not_the_one_that_was_signed(project_id: UUID) -> None:
    heads_sign(NO_TIME)
    with triggers_lifted():
        previous = GENESIS
        for row in AuditEvent.objects.filter(project_id=project_id).order_by("seq"):
            row.actor = "nobody"
            row.hash = previous = hash_of(previous, entry_of(row))
            row.save()
    assert audit_verify(project_id).problems == ("row 3 is not the one that was signed",)


def test_a_head_is_signed_when_its_chain_grew_and_the_interval_passed(project_id: UUID) -> None:
    # The server's own chain, which repeats the head, is signed with it.
    assert heads_sign(NO_TIME) == 2
    assert heads_sign(NO_TIME) == 0
    audit("x", "y", (project_id, None, None))
    assert heads_sign(timedelta(hours=1)) == 0
    assert heads_sign(NO_TIME) == 2
    assert audit_verify(project_id).signed == 2
    assert [audit_verify(each).problems for each in chains()] == [(), ()]


def test_a_retired_key_still_verifies_and_an_unknown_one_does_not(
    project_id: UUID, settings: object
) -> None:
    heads_sign(NO_TIME)
    old, new = settings.ENCRYPTION_KEYS, "MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTIzNDU2Nzg5MDE="
    settings.ENCRYPTION_KEYS = [new, *old]
    assert audit_verify(project_id).problems == ()
    settings.ENCRYPTION_KEYS = [new]
    assert audit_verify(project_id).problems == ("the signature of the head at row 3 is not ours",)


def test_rows_whose_time_is_over_go_and_the_rest_verifies(project_id: UUID) -> None:
    heads_sign(NO_TIME)
    assert audit_expire(project_id, timezone.now() - timedelta(days=1), actor="sweeper") == 0
    assert audit_expire(project_id, timezone.now(), actor="sweeper") == 2
    verdict = audit_verify(project_id)
    assert (verdict.rows, verdict.expired, verdict.problems) == (2, 2, ())
    left = AuditEvent.objects.filter(project_id=project_id).order_by("seq")
    assert [(row.seq, row.action) for row in left] == [(3, "session.start"), (4, "audit.expire")]
    assert left[1].detail == {"rows": 2, "to_seq": 2}
    # Expiry opens nothing else.
    with pytest.raises(DatabaseError, match="append-only"):
        AuditEvent.objects.filter(project_id=project_id).delete()
    assert (
        _problems(project_id, "DELETE FROM projects_auditevent WHERE seq = 3")[0]
        == "rows 3 to 3 are missing"
    )


def test_rows_that_expire_while_the_chain_is_read_are_no_problem(
    project_id: UUID, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows, left = proof._rows, [1]

    def expired_before(chain: UUID) -> Iterator[AuditEvent]:
        if left:
            audit_expire(chain, timezone.now(), actor="sweeper")
            left.pop()
        return rows(chain)

    monkeypatch.setattr(proof, "_rows", expired_before)
    verdict = audit_verify(project_id)
    assert (verdict.problems, verdict.expired, verdict.rows) == ((), 2, 2)


def test_a_forged_expiry_lets_rows_be_removed_and_is_found(project_id: UUID) -> None:
    row = AuditEvent.objects.get(project_id=project_id, seq=2)
    AuditMark.objects.create(
        project_id=project_id, kind="expiry", seq=2, hash=row.hash, signature="0" * 64
    )
    AuditEvent.objects.filter(project_id=project_id, seq__lte=2).delete()
    assert audit_verify(project_id).problems == (
        "the signature of the expiry at row 2 is not ours",
        "rows 1 to 2 are missing",
    )


def test_many_writers_at_once_make_one_chain(project_id: UUID) -> None:
    def write(number: int) -> None:
        try:
            audit(f"writer:{number}", "x", (project_id, None, None))
        finally:
            connection.close()

    with ThreadPoolExecutor(8) as threads:
        list(threads.map(write, range(40)))
    verdict = audit_verify(project_id)
    assert (verdict.rows, verdict.problems) == (43, ())


def test_the_export_is_every_row_and_mark_as_json_lines_and_is_audited(project_id: UUID) -> None:
    heads_sign(NO_TIME)
    out = StringIO()
    call_command("export_audit", project="acme", stdout=out)
    lines = [json.loads(line) for line in out.getvalue().splitlines()]
    assert [(line["type"], line["seq"]) for line in lines] == [
        ("event", 1),
        ("event", 2),
        ("event", 3),
        ("event", 4),
        ("head", 3),
    ]
    assert (lines[0]["actor"], lines[0]["detail"]["command"]) == ("token:0", "é\u202e 0")
    assert lines[3]["action"] == "audit.export"
    assert lines[2]["hash"] == lines[4]["hash"]
    assert list(audit_export([project_id])) == lines
    with pytest.raises(CommandError, match="no project"):
        call_command("export_audit", project="nope")


def test_the_command_reports_each_chain_and_fails_on_a_broken_one(project_id: UUID) -> None:
    audit("x", "y", (None, None, None))
    out = StringIO()
    call_command("verify_audit", stdout=out)
    assert sorted(out.getvalue().splitlines()) == [
        "(server): whole, 1 rows, 0 expired, 0 signed heads",
        "acme: whole, 3 rows, 0 expired, 0 signed heads",
    ]
    _problems(project_id, "UPDATE projects_auditevent SET actor = 'nobody' WHERE seq = 2")
    out = StringIO()
    with pytest.raises(CommandError, match="1 of 1"):
        call_command("verify_audit", project="acme", stdout=out)
    assert "  row 2 is not what was written" in out.getvalue().splitlines()
    with pytest.raises(CommandError, match="there is no project 'nope'"):
        call_command("verify_audit", project="nope")
