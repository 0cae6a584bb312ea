"""A field with a value that means nothing never ends in an error of the server."""

import msgspec
import pytest
from django.test import Client

from console.live.messages import Release
from console.live.person import is_from_own_page, session_key_of
from console.login.sessions import SessionStore
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


@pytest.mark.parametrize(
    "path", [*FIELDS, "/approvals/", "/attention/", "/runs/"], ids=lambda path: path.strip("/")
)
def test_an_unknown_filter_shows_nothing_of_a_list(
    person_with: PersonWith, ours: Tenant, path: str
) -> None:
    client = person_with(*RIGHTS, "view_approval", "view_agentrun")
    known = FIELDS.get(path, ())
    assert client.get(path, dict.fromkeys(known, "")).status_code == 200
    answer = client.get(path, {**dict.fromkeys(known, ""), "sate\u202e": "lost"})
    assert answer.status_code == 400
    assert "This filter is not understood: sate\\u202e. Nothing is shown." in answer.text
    assert all(name in answer.text for name in known)
    assert ours.host.name not in answer.text


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


@pytest.mark.parametrize("key", ['"abcdefgh\\000abcdefgh"', "abcdefgh/../../x", "é" * 20])
def test_a_cookie_that_names_no_login_is_that_of_a_stranger(client: Client, key: str) -> None:
    headers = {"cookie": f"sessionid={key}"}
    assert client.get("/login/", headers=headers).status_code == 200
    assert client.get("/", headers=headers).status_code == 302
    assert (
        SessionStore(session_key_of([(b"cookie", headers["cookie"].encode())])).session_key is None
    )


@pytest.mark.parametrize("origin", [b"http://[", b"http://[::1]x", b"http://a\xbd", b"\xff"])
def test_an_origin_that_is_no_address_is_not_ours(origin: bytes) -> None:
    assert not is_from_own_page([(b"host", b"localhost"), (b"origin", origin)])


def test_a_note_with_a_nul_is_no_message() -> None:
    with pytest.raises(msgspec.ValidationError):
        msgspec.json.decode(b'{"type":"release","note":"a\\u0000b"}', type=Release)
    assert msgspec.json.decode(b'{"type":"release","note":"a\\nb"}', type=Release).note == "a\nb"
