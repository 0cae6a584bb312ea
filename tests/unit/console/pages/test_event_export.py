"""The export of the time line: both forms, its filters, and its own audit row."""

import csv
import io
import json

import pytest
from django.contrib.auth.models import User

from projects.audit.log import audit
from projects.errors.base import Forbidden
from projects.models import AuditEvent
from projects.reads import streamed
from tests.unit.console.conftest import PersonWith, Tenant, read

pytestmark = pytest.mark.django_db(transaction=True)
RIGHTS = ("view_auditevent", "export_auditevent")


def test_both_forms_have_names_and_leave_an_audit_row(
    person_with: PersonWith, ours: Tenant
) -> None:
    about = (ours.project.pk, ours.host.pk, ours.session.pk)
    audit("=cmd()", "session.start", about, {"size": 3})
    audit("token:x", "session.input", about)
    client = person_with(*RIGHTS)
    lines = read(client.post("/timeline/export/", {"format": "jsonl", "action": "start"}))
    (row,) = [json.loads(line) for line in lines.splitlines()]
    assert (row["host"], row["command"]) == (ours.host.name, ours.session.command)
    assert row["detail"] == {"size": 3}
    table = read(client.post("/timeline/export/", {"format": "csv", "action": "start"}))
    (cells,) = csv.DictReader(io.StringIO(table))
    assert cells["actor"] == "'=cmd()", "a spreadsheet would run it"
    written = AuditEvent.objects.filter(action="audit.export", actor="admin:ann")
    assert [one.detail for one in written] == [{"filters": {"action": "start"}}] * 2


@pytest.mark.parametrize(
    ("actor", "cell"),
    [
        ("=cmd()", "'=cmd()"),
        ("\t=cmd()", "'\t'=cmd()"),
        ("a;=cmd()", "a;'=cmd()"),
        ('a";@cmd()', "a\";'@cmd()"),
        ('"-cmd()', "\"'-cmd()"),
        ("a\n+cmd()", "a\n'+cmd()"),
        ("a=b-c", "a=b-c"),
        ("\r1", "'\r1"),
        ("\uff1dcmd()", "'\uff1dcmd()"),
        ("a|\uff0dcmd()", "a|'\uff0dcmd()"),
        ("-1+1", "'-1+1"),
        ("'=cmd()", "''=cmd()"),
    ],
)
def test_no_cell_is_a_formula_wherever_a_table_is_parted(
    person_with: PersonWith, ours: Tenant, actor: str, cell: str
) -> None:
    audit(actor, "session.start", (ours.project.pk, ours.host.pk, ours.session.pk))
    client = person_with(*RIGHTS)
    table = read(client.post("/timeline/export/", {"format": "csv", "action": "start"}))
    (cells,) = csv.DictReader(io.StringIO(table, newline=""))
    assert cells["actor"] == cell
    assert all(line.startswith('"') for line in table.split("\r\n") if line)


@pytest.mark.parametrize("filters", [{"actor": "x" * 60_000}, {"since": "x" * 60_000}])
def test_a_filter_that_no_name_is_as_long_as_is_refused(
    person_with: PersonWith, filters: dict[str, str]
) -> None:
    client = person_with(*RIGHTS, "view_commandsession", "view_controller")
    assert client.post("/timeline/export/", filters).status_code == 400
    assert client.get("/timeline/", filters).status_code == 400
    assert client.get("/hosts/", {"q": filters.popitem()[1]}).status_code == 400


@pytest.mark.parametrize("address", ["/timeline/export/", "/admin/projects/auditevent/export/"])
def test_an_export_ends_with_the_right_to_it(
    person_with: PersonWith, ours: Tenant, address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(streamed, "CHECK_SECONDS", 0.0)
    audit("token:x", "session.input", (ours.project.pk, ours.host.pk, ours.session.pk))
    client = person_with(*RIGHTS)
    assert "session.input" in read(client.post(address))
    answer = client.post(address)
    User.objects.get().user_permissions.clear()
    with pytest.raises(Forbidden):
        read(answer)


def test_only_who_may_export_does(person_with: PersonWith) -> None:
    assert person_with("view_auditevent").post("/timeline/export/").status_code == 403
