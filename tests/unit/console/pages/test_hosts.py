"""The list of hosts shows those of the person's projects, and makes a line that enrols another."""

import re
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from console.pages import hosts
from console.parts.words import age, ago
from projects.enrolment.codes import host_enrol
from projects.models import AuditEvent, Controller
from projects.storage import clock
from tests.unit.console.conftest import PersonWith, Tenant


def test_hosts_of_other_projects_are_not_listed(
    person_with: PersonWith, ours: Tenant, theirs: Tenant
) -> None:
    text = person_with("view_controller").get("/hosts/").text
    assert ours.host.name in text
    assert theirs.host.name not in text


@pytest.mark.parametrize("state", ["zzz", "Online", "online "])
def test_an_unknown_state_shows_no_host(person_with: PersonWith, ours: Tenant, state: str) -> None:
    answer = person_with("view_controller").get("/hosts/", {"state": state})
    assert answer.status_code == 400
    assert "This filter is not understood: state" in answer.text
    assert ours.host.name not in answer.text


def test_less_than_a_minute_is_not_said_as_zero_minutes() -> None:
    soon, earlier = (clock.now() - timedelta(seconds=each) for each in (20, 130))
    assert (ago(soon), age(soon)) == ("just now", "less than a minute")
    assert (ago(earlier), age(earlier)) == ("2\xa0minutes ago", "2\xa0minutes")


def test_a_list_that_is_cut_says_so(
    person_with: PersonWith, ours: Tenant, monkeypatch: pytest.MonkeyPatch
) -> None:
    page = person_with("view_controller")
    assert "These are the first" not in page.get("/hosts/").text
    monkeypatch.setattr(hosts, "_MOST", 1)
    Controller.objects.create(project=ours.project, name="z")
    assert "These are the first 1 hosts" in page.get("/hosts/").text


def test_an_outdated_version_and_an_alarm_are_said(person_with: PersonWith, ours: Tenant) -> None:
    ours.host.client_version = "0.0.9+abcdef01"
    ours.host.alarm, ours.host.alarmed_at = "a copy of the credential", ours.host.created_at
    ours.host.save()
    text = person_with("view_controller").get("/hosts/?state=alarm").text
    assert "not the server&#x27;s" in text or "not the server's" in text
    assert "ALARM" in text


def test_hosts_are_found_by_label_and_by_an_outdated_version(
    person_with: PersonWith, ours: Tenant
) -> None:
    page = person_with("view_controller")
    assert f">{ours.host.name}<" not in page.get("/hosts/?state=outdated").text
    ours.host.client_version, ours.host.labels = "0.0.9+abcdef01", "gpu rack:7"
    ours.host.save()
    for address in ("/hosts/?state=outdated", "/hosts/?q=rack:7"):
        assert f">{ours.host.name}<" in page.get(address).text
    assert f">{ours.host.name}<" not in page.get("/hosts/?q=rack:8").text


def test_the_line_installs_where_the_server_has_a_bundle(
    person_with: PersonWith, ours: Tenant, tmp_path: Path, settings: Any
) -> None:
    settings.BUNDLE_DIR = str(tmp_path)
    client = person_with("view_controller", "manage_controller")
    form = {"project": str(ours.project.pk), "name": "web-2", "labels": "gpu"}
    assert "install.sh" not in client.post("/hosts/enrol/", form).text
    (tmp_path / "holdline-controller-linux-x86_64.tar.gz").write_bytes(b"x")
    text = client.post("/hosts/enrol/", form).text
    (line,) = re.findall(r"curl -fsSL (\S+)/install.sh \| sudo sh -s -- --code (\S+)</pre>", text)
    host_enrol(code=line[1])
    assert Controller.objects.get(name="web-2").labels == "gpu"


def test_the_line_to_paste_enrols_a_host_once(person_with: PersonWith, ours: Tenant) -> None:
    client = person_with("view_controller", "manage_controller")
    form = {"project": str(ours.project.pk), "name": "web-2"}
    text = client.post("/hosts/enrol/", form).text
    (address, code) = re.findall(r"enroll --server (\S+) --code (\S+)</pre>", text)[0]
    assert address.endswith("/ws/controller/")
    assert host_enrol(code=code).controller == "web-2"
    assert Controller.objects.filter(project=ours.project, name="web-2").exists()
    assert AuditEvent.objects.filter(action="enrolment_code.create", actor="admin:ann").exists()


def test_a_name_that_is_taken_is_refused_with_its_reason(
    person_with: PersonWith, ours: Tenant
) -> None:
    client = person_with("view_controller", "manage_controller")
    form = {"project": str(ours.project.pk), "name": ours.host.name}
    assert "already has a controller" in client.post("/hosts/enrol/", form, follow=True).text


def test_nobody_enrols_a_host_into_another_project(person_with: PersonWith, theirs: Tenant) -> None:
    client = person_with("view_controller", "manage_controller")
    form = {"project": str(theirs.project.pk), "name": "web-2"}
    assert client.post("/hosts/enrol/", form).status_code == 404
    assert client.post("/hosts/enrol/", {"project": "x", "name": "web-2"}).status_code == 302
