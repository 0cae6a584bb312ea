"""Keys that enrol a number of hosts for a time, and the labels of hosts."""

import json
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from io import StringIO

import pytest
from django.core.exceptions import ValidationError
from django.core.management import CommandError, call_command
from django.db import connection
from django.test import AsyncClient
from django.utils import timezone

from controller_client import __version__
from projects.accounts.errors import EnrolmentRefused
from projects.enrolment.codes import enrolment_code_create, enrolment_key_create, host_enrol
from projects.errors.calls import InvalidArgument
from projects.models import AuditEvent, Controller, EnrolmentCode, Project
from projects.reads.hosts import STATES

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def project() -> Project:
    return Project.objects.create(name="acme")


def test_a_key_serves_so_many_hosts_and_no_more_at_once(project: Project) -> None:
    row, key = enrolment_key_create(project=project, hosts=3, hours=1)

    def enrol(number: int) -> bool:
        try:
            host_enrol(code=key, name=f"web-{number}")
        except EnrolmentRefused:
            return False
        finally:
            connection.close()
        return True

    with ThreadPoolExecutor(12) as threads:
        assert sorted(threads.map(enrol, range(12))) == [False] * 9 + [True] * 3
    assert Controller.objects.count() == 3
    row.refresh_from_db()
    assert row.enrolled == 3


def test_a_key_ends_with_its_time_or_when_it_is_withdrawn(project: Project) -> None:
    row, key = enrolment_key_create(project=project, hosts=9, hours=1)
    host_enrol(code=key, name="web-1")
    for spoilt in ({"expires_at": timezone.now()}, {"revoked_at": timezone.now()}):
        EnrolmentCode.objects.filter(id=row.id).update(
            **{"expires_at": timezone.now() + timedelta(hours=1), "revoked_at": None, **spoilt}
        )
        with pytest.raises(EnrolmentRefused):
            host_enrol(code=key, name="web-2")
    assert Controller.objects.count() == 1


@pytest.mark.parametrize("name", ["", "no name <b>", "taken", "x" * 65])
def test_a_name_that_a_host_cannot_have_uses_nothing_up(project: Project, name: str) -> None:
    row, key = enrolment_key_create(project=project, hosts=2, hours=1)
    host_enrol(code=key, name="taken")
    with pytest.raises(InvalidArgument, match="name"):
        host_enrol(code=key, name=name)
    row.refresh_from_db()
    assert (row.enrolled, Controller.objects.count()) == (1, 1)


def test_a_code_used_at_a_server_of_an_earlier_version_is_used(project: Project) -> None:
    row, code = enrolment_code_create(project=project, name="web-1")
    EnrolmentCode.objects.filter(id=row.id).update(used_at=timezone.now())
    with pytest.raises(EnrolmentRefused):
        host_enrol(code=code)


def test_a_code_with_a_name_keeps_it_whatever_the_host_says(project: Project) -> None:
    _, code = enrolment_code_create(project=project, name="web-1")
    assert host_enrol(code=code, name="db-1").controller == "web-1"
    with pytest.raises(ValueError, match="needs the name"):
        enrolment_code_create(project=project, name="")


def test_labels_of_code_and_host_are_united_and_audited(project: Project) -> None:
    _, code = enrolment_code_create(project=project, name="web-1", labels="gpu rack:7")
    host_enrol(code=code, labels="gpu own")
    assert Controller.objects.get().labels == "gpu own rack:7"
    assert AuditEvent.objects.get(action="controller.enrol").detail["labels"] == "gpu own rack:7"


@pytest.mark.parametrize("labels", ["<b>", "a,b", "é", "x" * 65, " ".join(["word"] * 200) + "$"])
def test_labels_that_are_no_words_are_refused_and_use_nothing_up(
    project: Project, labels: str
) -> None:
    with pytest.raises(ValidationError):
        enrolment_code_create(project=project, name="web-1", labels=labels)
    _, code = enrolment_code_create(project=project, name="web-1")
    with pytest.raises(InvalidArgument, match="labels"):
        host_enrol(code=code, labels=labels)
    assert host_enrol(code=code).controller == "web-1"


@pytest.mark.parametrize(("hosts", "hours"), [(0, 1), (-1, 1), (10_001, 1), (1, 0), (1, 1e9)])
def test_a_key_has_bounds(project: Project, hosts: int, hours: float) -> None:
    with pytest.raises(ValidationError):
        enrolment_key_create(project=project, hosts=hosts, hours=hours)


async def test_hosts_tell_name_and_labels_or_hear_what_is_wrong(project: Project) -> None:
    from projects.storage.access import in_database

    _, key = await in_database(
        lambda: enrolment_key_create(project=project, hosts=2, hours=1, labels="rack:7")
    )

    async def post(**body: object) -> tuple[int, dict[str, str]]:
        answer = await AsyncClient().post(
            "/controllers/enrol", json.dumps(body), content_type="application/json"
        )
        return answer.status_code, answer.json()

    status, said = await post(code=key, name="web-1", labels=["gpu"])
    assert (status, said["controller"]) == (200, "web-1")
    for wrong in ({"name": 3}, {"labels": "gpu"}, {"labels": [3]}, {"name": "web-1"}, {}):
        status, said = await post(**{"code": key, **wrong})
        assert status == 400, said
    assert await Controller.objects.aget(name="web-1", labels="gpu rack:7")


def _hosts(*arguments: str) -> list[dict[str, object]]:
    out = StringIO()
    call_command("hosts", "--json", *arguments, stdout=out)
    found: list[dict[str, object]] = json.loads(out.getvalue())
    return found


def test_the_commands_make_keys_and_find_hosts(project: Project) -> None:
    out = StringIO()
    call_command(
        "create_enrolment_key", "acme", "--hosts", "2", "--label", "gpu", "--label", "b", stdout=out
    )
    host_enrol(code=out.getvalue().strip(), name="old")
    host_enrol(code=out.getvalue().strip(), name="new", labels="gpu2")
    Controller.objects.filter(name="old").update(client_version="0.0.9+abc")
    Controller.objects.filter(name="new").update(client_version=f"{__version__}+abc")
    assert [one["host"] for one in _hosts()] == ["acme/new", "acme/old"]
    assert [one["host"] for one in _hosts("--state", "outdated")] == ["acme/old"]
    assert [one["host"] for one in _hosts("--label", "gpu2")] == ["acme/new"]
    assert [one["host"] for one in _hosts("--label", "gpu")] == ["acme/new", "acme/old"]
    with pytest.raises(CommandError, match="PROJECT_NOT_FOUND"):
        _hosts("elsewhere")
    assert _hosts("acme", "--state", "online") == []
    shown = StringIO()
    call_command("hosts", stdout=shown)
    assert "acme/old  offline  0.0.9+abc (outdated)  b gpu" in shown.getvalue()


@pytest.mark.parametrize(
    ("label", "found"),
    [
        ("gpu", ["acme/a"]),
        ("GPU", ["acme/b"]),
        ("rack:7", ["acme/a", "acme/b"]),
        ("rack:", []),
        ("gp", []),
        ("%", []),
        ("g_u", []),
        ("gpu rack:7", []),
        (" ", []),
        ("r.ck:7", []),
        ("gpu ", []),
    ],
)
def test_a_label_is_found_as_a_whole_word(project: Project, label: str, found: list[str]) -> None:
    for name, labels in (("a", "gpu rack:7"), ("b", "GPU rack:7"), ("c", ""), ("d", "rack:77")):
        Controller.objects.create(project=project, name=name, labels=labels)
    assert [one["host"] for one in _hosts("--label", label)] == found


def test_each_state_finds_its_hosts_and_only_revoked_finds_revoked_ones(project: Project) -> None:
    now = timezone.now()
    current = f"{__version__}+abc"
    for name, fields in (
        ("away", {"client_version": current}),
        ("beside", {"client_version": f"{__version__}.1"}),
        ("copied", {"alarmed_at": now, "client_version": current}),
        ("fresh", {}),
        ("gone", {"revoked_at": now, "alarmed_at": now, "client_version": "0.0.1"}),
        ("here", {"lease_expires_at": now + timedelta(minutes=5), "client_version": current}),
        ("old", {"client_version": "0.0.1+abc"}),
        ("waiting", {"awaits_approval_since": now, "client_version": current}),
    ):
        Controller.objects.create(project=project, name=name, **fields)

    def named(state: str) -> list[str]:
        return [str(one["host"]).removeprefix("acme/") for one in _hosts("--state", state)]

    assert {state: named(state) for state in STATES} == {
        "online": ["here"],
        "offline": ["away", "beside", "copied", "fresh", "old", "waiting"],
        "alarm": ["copied"],
        "waits": ["waiting"],
        # A host that was never connected has no version yet.
        "outdated": ["beside", "old"],
        "revoked": ["gone"],
    }
    assert "gone" not in [one["host"] for one in _hosts()]
    shown = {str(one["host"]): (one["state"], one["outdated"]) for one in _hosts("acme")}
    assert shown["acme/here"] == ("online", False)
    assert shown["acme/waiting"] == ("waits", False)
    assert shown["acme/beside"] == ("offline", True)


@pytest.mark.parametrize("number", [float("nan"), float("inf"), -1.0, 0.0, 1e300])
def test_no_code_and_no_key_lasts_for_such_a_time(project: Project, number: float) -> None:
    with pytest.raises(ValidationError):
        enrolment_key_create(project=project, hosts=1, hours=number)
    with pytest.raises(ValidationError):
        enrolment_code_create(project=project, name="web-1", minutes=number)
    assert not EnrolmentCode.objects.exists()


def test_a_host_that_replaces_another_keeps_its_labels(project: Project) -> None:
    _, code = enrolment_code_create(project=project, name="web-1", labels="eu front")
    host_enrol(code=code)
    _, code = enrolment_code_create(project=project, name="web-1", is_replacement=True)
    host_enrol(code=code, labels="new")
    assert Controller.objects.get().labels == "eu front new"
