"""What an auditor does with an exported chain: by the guide alone, with no code of the server."""

import json
from hashlib import sha256
from io import StringIO
from typing import Any
from uuid import UUID, uuid4

import pytest
from django.core.management import CommandError, call_command
from django.test import Client
from django.utils import timezone

from projects.audit.log import SERVER, audit
from projects.audit.marks import heads_sign
from projects.audit.proof import audit_expire
from projects.models import AuditEvent, Project
from tests.support.running.append_only import triggers_lifted
from tests.unit.console.conftest import read
from tests.unit.projects.audit.test_marks import NO_TIME

pytestmark = pytest.mark.django_db(transaction=True)

Line = dict[str, Any]
_HASHED = ("seq", "at", "project_id", "controller_id", "session_id", "actor", "action", "detail")
_ODD: dict[str, Any] = {
    "z": [1, -0.0, 1e22, True, None, {"b": "\u0455\u202e", "a": '"\\/\n\x7f'}],
    "": "\U0001f512",
    "a": 2**53 + 1,
}


@pytest.fixture
def project_id() -> UUID:
    """A project with four rows, of which one is odd."""
    made: UUID = Project.objects.create(name="acme").id
    for detail in ({}, _ODD, {"size": 3}, {}):
        audit("token:\u00e9", "session.start", (made, uuid4(), uuid4()), detail)
    return made


def _exported(*arguments: str) -> list[Line]:
    call_command("export_audit", *arguments, stdout=(out := StringIO()))
    return [json.loads(line) for line in out.getvalue().splitlines()]


def _hash(previous: str, line: Line) -> str:
    content = [line[name] for name in _HASHED]
    text = json.dumps(content, sort_keys=True, separators=(",", ":"), ensure_ascii=True)
    return sha256(previous.encode() + b"\n" + text.encode("ascii")).hexdigest()


def _broken(lines: list[Line]) -> list[int]:
    """The rows whose hash is not that of their content and of the row before."""
    expired = [(line["seq"], line["hash"]) for line in lines if line["type"] == "expiry"]
    seq, previous = max(expired, default=(0, "0" * 64))
    found = []
    for line in lines:
        if line["type"] == "event":
            if line["seq"] != seq + 1 or line["hash"] != _hash(previous, line):
                found.append(line["seq"])
            seq, previous = line["seq"], line["hash"]
    return found


def test_each_hash_is_made_as_the_guide_says(project_id: UUID) -> None:
    lines = _exported("--project", "acme")
    assert [line["seq"] for line in lines] == [1, 2, 3, 4, 5]
    assert _broken(lines) == []
    lines[1]["detail"]["a"] += 1
    assert _broken(lines) == [2]


def test_a_row_that_was_changed_or_left_out_is_found_by_the_guide(project_id: UUID) -> None:
    lines = _exported()
    own = [line for line in lines if line["project_id"] == str(project_id)]
    assert _broken(own) == []
    assert _broken([*own[:1], *own[2:]]) == [3]
    with triggers_lifted():
        AuditEvent.objects.filter(project_id=project_id, seq=3).update(action="session.end")
    assert _broken(_exported("--project", "acme")) == [3]


def test_the_rest_of_an_expired_chain_follows_from_its_mark(project_id: UUID) -> None:
    heads_sign(NO_TIME)
    assert audit_expire(project_id, timezone.now(), actor="retention") == 3
    lines = _exported("--project", "acme")
    assert [line["seq"] for line in lines if line["type"] == "event"] == [4, 5, 6]
    assert _broken(lines) == []


def test_each_chain_comes_whole_and_its_marks_come_last(project_id: UUID) -> None:
    audit("nobody", "login.failed", (None, None, None))
    heads_sign(NO_TIME)
    Project.objects.all().delete()
    lines = _exported()
    of = {
        chain: [x for x in lines if x["project_id"] == str(chain)] for chain in (project_id, SERVER)
    }
    assert sum(map(len, of.values())) == len(lines)
    for chain in of.values():
        types = [line["type"] for line in chain]
        assert types == sorted(types, key=("event", "head").index)
        assert types.count("head") == 1
        assert _broken(chain) == []
    with pytest.raises(CommandError, match="no project 'acme'"):
        call_command("export_audit", "--project", "acme")


def test_a_second_export_holds_the_row_of_the_first(project_id: UUID) -> None:
    first, second = _exported("--project", "acme"), _exported("--project", "acme")
    assert second[:5] == first
    assert [line["action"] for line in second[4:]] == ["audit.export"] * 2


def test_the_export_of_the_admin_is_that_of_the_command(
    project_id: UUID, admin_client: Client
) -> None:
    heads_sign(NO_TIME)
    by_command = _exported()
    text = read(admin_client.post("/admin/projects/auditevent/export/"))
    by_admin = [json.loads(line) for line in text.splitlines()]
    new = [line for line in by_admin if line not in by_command]
    assert {line["actor"] for line in new} == {"admin:admin"}
    assert [line for line in by_admin if line not in new] == by_command
    assert _broken([line for line in by_admin if line["project_id"] == str(project_id)]) == []


def test_a_broken_chain_ends_the_command_with_1(project_id: UUID) -> None:
    call_command("verify_audit", stdout=StringIO())
    with triggers_lifted():
        AuditEvent.objects.filter(project_id=project_id, seq=4).update(actor="nobody")
    Project.objects.all().delete()
    with pytest.raises(CommandError) as failed:
        call_command("verify_audit", stdout=(out := StringIO()))
    assert failed.value.returncode == 1
    assert f"{project_id}: BROKEN, 4 rows" in out.getvalue()
    assert "  row 4 is not what was written" in out.getvalue()
