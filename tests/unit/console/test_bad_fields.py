"""A field with a value that means nothing never ends in an error of the server."""

import pytest

from tests.unit.console.conftest import PersonWith, Tenant

RIGHTS = (
    "view_auditevent",
    "export_auditevent",
    "view_commandsession",
    "view_controller",
    "manage_controller",
    "view_transcript",
)
FIELDS = {
    "/timeline/": ("project", "host", "session", "actor", "action", "since", "until", "before"),
    "/hosts/": ("q", "state"),
    "/search/": ("q", "project"),
    "/": ("q", "waits", "host", "since"),
}
OF_SESSION = {
    "/share/{}/": ("t",),
    "/sessions/{}/events/": ("after",),
    "/sessions/{}/replay/part/": ("stdout", "stderr"),
    "/sessions/{}/replay/screens/": ("after",),
    "/sessions/{}/replay/screen/": ("place",),
}
FORMS = {
    "/sessions/{}/replay/erase/": ("from", "to", "whole"),
    "/sessions/{}/replay/download/": ("format",),
}
VALUES = (
    "9" * 400,
    "-1",
    "\u0663",
    "0001-01-01T00:00+14:00",
    "9999-12-31T23:59-14:00",
    "[",
    "%",
    "\U0001f512",
    "nan",
    "-inf",
    "1e400",
    "999999d",
)


@pytest.mark.parametrize("path", FIELDS)
@pytest.mark.parametrize("value", VALUES)
def test_a_value_that_means_nothing_is_refused_or_finds_nothing(
    person_with: PersonWith, path: str, value: str
) -> None:
    client = person_with(*RIGHTS)
    for field in FIELDS[path]:
        assert client.get(path, {field: value}).status_code in (200, 400), field


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("value", VALUES)
def test_a_value_that_means_nothing_is_no_place_in_a_recording(
    person_with: PersonWith, ours: Tenant, value: str
) -> None:
    client = person_with(*RIGHTS, "clear_output")
    for send, paths in ((client.get, OF_SESSION), (client.post, FORMS)):
        for path, fields in paths.items():
            for field in fields:
                others = dict.fromkeys(fields, "0") if send == client.post else {}
                answer = send(path.format(ours.session.pk), {**others, field: value})
                assert answer.status_code in (200, 302, 400, 404), (path, field)


@pytest.mark.parametrize("path", FIELDS)
def test_a_nul_is_refused_in_each_field(person_with: PersonWith, path: str) -> None:
    client = person_with(*RIGHTS)
    for field in FIELDS[path]:
        assert client.get(path, {field: "a\0b"}).status_code == 400


@pytest.mark.parametrize("path", ["/hosts/enrol/", "/timeline/export/", "/timeline/verify/"])
def test_a_nul_is_refused_in_a_form(person_with: PersonWith, path: str) -> None:
    fields = {"project": "\0", "name": "\0"}
    assert person_with(*RIGHTS).post(path, fields).status_code == 400
