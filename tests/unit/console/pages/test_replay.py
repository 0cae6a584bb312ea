"""The replay is for those who may see screens, only of their projects, and looks are audited."""

import json
import re
from unittest.mock import patch

import pytest
from django.contrib.auth.models import User
from django.utils import timezone

from console.parts.looks import LOOK_LASTS
from controller_client.protocol.messages import HostTime
from projects.errors.base import Forbidden
from projects.models import AuditEvent, CommandSession, OutputChunk
from projects.output import log as output_log
from projects.output.log import NewChunk
from projects.output.recording import events, screens
from projects.output.recording.events import NewEvent
from projects.output.recording.screens import NewScreen, ScreenPlace
from projects.reads import streamed
from tests.unit.console.conftest import PersonWith, Tenant, read

pytestmark = pytest.mark.django_db(transaction=True)

ADDRESSES = ("", "index/", "part/", "screens/", "screen/")
RIGHTS = ("view_commandsession", "view_transcript")


def _print(session: CommandSession, data: bytes) -> None:
    at = HostTime(wall=1_763_850_000.0, clock=7.0)
    output_log.append([NewChunk(session.pk, "stdout", 0, 1, data, at)])
    CommandSession.objects.filter(pk=session.pk).update(stdout_next_offset=len(data))


def _store_screen(session: CommandSession) -> None:
    """Stores a screen at the place 6."""
    at = ScreenPlace(time=2.5, stdout=5, stderr=1)
    read_at = screens.version(session.pk)
    assert screens.store(session.pk, read_at, [NewScreen(at, b"deflated")])


def test_a_look_shows_the_player_and_is_audited(person_with: PersonWith, ours: Tenant) -> None:
    _print(ours.session, b"hello")
    client = person_with(*RIGHTS)
    start = f"/sessions/{ours.session.pk}/replay/"
    page = client.get(start).text
    assert f'data-index="{start}index/"' in page
    index = client.get(f"{start}index/").json()
    assert (index["began_at"], index["is_host_time"]) == (1_763_850_000, True)
    part = client.get(f"{start}part/?stdout=0&stderr=0").json()
    assert part == {"pieces": [[0, "aGVsbG8="]], "stdout": None, "stderr": None}
    rows = AuditEvent.objects.filter(action="transcript.view")
    assert [(row.session_id, row.detail) for row in rows] == [(ours.session.pk, {"view": "replay"})]


def test_a_player_learns_where_it_may_begin_and_with_what(
    person_with: PersonWith, ours: Tenant
) -> None:
    _store_screen(ours.session)
    client = person_with(*RIGHTS)
    start = f"/sessions/{ours.session.pk}/replay/"
    known = client.get(f"{start}screens/").json()
    assert known == {"is_growing": False, "places": [{"time": 2.5, "stdout": 5, "stderr": 1}]}
    assert client.get(f"{start}screens/?after=6").json()["places"] == []
    assert client.get(f"{start}screen/?place=6").content == b"deflated"
    assert client.get(f"{start}screen/?place=5").status_code == 404
    assert client.get(f"{start}screens/?after=x").status_code == 400


def test_the_download_is_the_recording_and_is_audited(
    person_with: PersonWith, ours: Tenant
) -> None:
    _print(ours.session, b"hello")
    client = person_with(*RIGHTS)
    address = f"/sessions/{ours.session.pk}/replay/download/"
    assert client.get(address).status_code == 405
    assert client.post(address, {"format": "mp4"}).status_code == 400
    answer = client.post(address, {"format": "cast"})
    lines = [json.loads(line) for line in read(answer).splitlines()]
    assert (lines[0]["version"], lines[1:]) == (3, [[0.0, "o", "hello"]])
    assert "attachment" in answer["Content-Disposition"]
    assert AuditEvent.objects.filter(action="transcript.download").count() == 1


def test_a_download_ends_with_the_right_to_it(
    person_with: PersonWith, ours: Tenant, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(streamed, "CHECK_SECONDS", 0.0)
    _print(ours.session, b"hello")
    client = person_with(*RIGHTS)
    address = f"/sessions/{ours.session.pk}/replay/download/"
    assert "hello" in read(client.post(address))
    for end in (ours.project.members.clear, client.logout):
        answer = client.post(address)
        end()
        with pytest.raises(Forbidden):
            read(answer)
        ours.project.members.add(User.objects.get())


@pytest.mark.parametrize("address", ["index/", "part/", "screen/?place=6", "../events/"])
def test_what_a_player_reads_without_its_page_is_audited_once(
    person_with: PersonWith, ours: Tenant, address: str
) -> None:
    _print(ours.session, b"hello")
    _store_screen(ours.session)
    client = person_with(*RIGHTS)
    url = f"/sessions/{ours.session.pk}/replay/{address}".replace("replay/../", "")
    for _ in range(3):
        assert client.get(url).status_code == 200
    rows = AuditEvent.objects.filter(action="transcript.view", session_id=ours.session.pk)
    assert rows.count() == 1
    before = timezone.now() - LOOK_LASTS
    with patch("console.parts.looks.clock.now", return_value=before + 2 * LOOK_LASTS):
        client.get(f"/sessions/{ours.session.pk}/replay/index/")
    assert rows.count() == 2


@pytest.mark.parametrize(
    ("address", "status"),
    [
        ("part/?stdout=x", 400),
        ("part/?stderr=-1", 400),
        ("screen/?place=x", 404),
        ("screen/?place=5", 404),
        ("../events/?after=x", 400),
    ],
)
def test_a_request_that_is_refused_is_no_look(
    person_with: PersonWith, ours: Tenant, address: str, status: int
) -> None:
    _print(ours.session, b"hello")
    _store_screen(ours.session)
    client = person_with("view_transcript", "view_commandsession")
    url = f"/sessions/{ours.session.pk}/replay/{address}".replace("replay/../", "")
    assert client.get(url).status_code == status
    assert not AuditEvent.objects.filter(action="transcript.view").exists()


def test_a_look_that_a_clock_ahead_dated_hides_no_other(
    person_with: PersonWith, ours: Tenant
) -> None:
    client = person_with(*RIGHTS)
    index = f"/sessions/{ours.session.pk}/replay/index/"
    with patch("console.parts.looks.clock.now", return_value=timezone.now() + 9 * LOOK_LASTS):
        client.get(index)
    client.get(index)
    assert AuditEvent.objects.filter(action="transcript.view").count() == 2


@pytest.mark.parametrize("address", ADDRESSES)
def test_other_projects_and_missing_rights_show_nothing(
    person_with: PersonWith, ours: Tenant, theirs: Tenant, address: str
) -> None:
    client = person_with(*RIGHTS)
    assert client.get(f"/sessions/{theirs.session.pk}/replay/{address}").status_code == 404


@pytest.mark.parametrize("address", ADDRESSES)
def test_without_the_right_to_see_screens_there_is_no_replay(
    person_with: PersonWith, ours: Tenant, address: str
) -> None:
    client = person_with("view_commandsession")
    assert client.get(f"/sessions/{ours.session.pk}/replay/{address}").status_code == 403


@pytest.mark.parametrize("offset", ["-1", "x", "٣", ""])
def test_an_offset_is_a_number(person_with: PersonWith, ours: Tenant, offset: str) -> None:
    client = person_with(*RIGHTS)
    address = f"/sessions/{ours.session.pk}/replay/part/?stdout={offset}"
    assert client.get(address).status_code == 400
    far = client.get(f"/sessions/{ours.session.pk}/replay/part/?stdout={'9' * 40}").json()
    assert far["stdout"] is None


def test_who_may_clear_output_blacks_out_a_part_or_deletes_all(
    person_with: PersonWith, ours: Tenant, theirs: Tenant
) -> None:
    _print(ours.session, b"hunter2")
    ended = CommandSession.objects.filter(pk=ours.session.pk)
    address = f"/sessions/{ours.session.pk}/replay/erase/"
    between = {"from": "0", "to": "1.5"}
    client = person_with(*RIGHTS, "clear_output")
    assert client.post(f"/sessions/{theirs.session.pk}/replay/erase/").status_code == 404
    said = [client.post(address, between, follow=True).text]
    ended.update(state="EXITED")
    wrong = ({"from": "x"}, {"from": "0", "to": "inf"}, {"from": "5", "to": "9"})
    said += [client.post(address, fields, follow=True).text for fields in wrong]
    assert all("Nothing is deleted" in text for text in said)
    assert not AuditEvent.objects.filter(action__startswith="session.").exists()
    assert "Blacked out: 7 bytes." in client.post(address, between, follow=True).text
    assert "Deleted: all" in client.post(address, {"whole": "1"}, follow=True).text
    done = AuditEvent.objects.filter(action__startswith="session.").order_by("seq")
    assert list(done.values_list("action", flat=True)) == ["session.black_out", "session.clear"]


def test_who_may_see_a_recording_may_not_delete_of_it(
    person_with: PersonWith, ours: Tenant
) -> None:
    CommandSession.objects.filter(pk=ours.session.pk).update(state="EXITED")
    client = person_with(*RIGHTS)
    start = f"/sessions/{ours.session.pk}/replay/"
    assert "Delete what was printed" not in client.get(start).text
    assert client.post(f"{start}erase/", {"whole": "1"}).status_code == 403


def _print_pieces(session: CommandSession) -> None:
    """Prints a piece every ten seconds."""
    for number, data in enumerate((b"one ", b"two ", b"six ")):
        at = HostTime(wall=1_763_850_000.0 + 10 * number, clock=7.0 + 10 * number)
        output_log.append([NewChunk(session.pk, "stdout", 4 * number, number, data, at)])
    CommandSession.objects.filter(pk=session.pk).update(stdout_next_offset=12, state="EXITED")


def test_a_page_that_is_out_of_date_deletes_nothing_at_another_moment(
    person_with: PersonWith, ours: Tenant
) -> None:
    _print_pieces(ours.session)
    client = person_with(*RIGHTS, "clear_output")
    start = f"/sessions/{ours.session.pk}/replay/"

    def erased(since: int, shown: str) -> str:
        (began_at,) = re.findall(r'name="began_at" value="([^"]+)"', shown)
        fields = {"from": since, "to": since, "began_at": began_at}
        return str(client.post(f"{start}erase/", fields, follow=True).text)

    page = client.get(start).text
    assert "Blacked out: 4 bytes." in erased(0, page)
    assert "begins later now" in erased(10, page)
    kept = OutputChunk.objects.filter(session=ours.session).order_by("offset")
    assert [bytes(row.data) for row in kept] == [b"two ", b"six "]
    assert "Blacked out: 4 bytes." in erased(10, client.get(start).text)
    assert [bytes(row.data) for row in kept.all()] == [b"two "]


def test_what_was_blacked_out_is_not_blacked_out_again(
    person_with: PersonWith, ours: Tenant
) -> None:
    _print_pieces(ours.session)
    client = person_with(*RIGHTS, "clear_output")
    address = f"/sessions/{ours.session.pk}/replay/erase/"
    said = [client.post(address, {"from": 10, "to": 10}, follow=True).text for _ in range(2)]
    assert "Blacked out: 4 bytes." in said[0]
    assert "nothing was printed between them" in said[1]
    for _ in range(2):
        client.post(address, {"whole": "1"})
    rows = AuditEvent.objects.filter(action__startswith="session.").order_by("seq")
    assert list(rows.values_list("action", flat=True)) == ["session.black_out", "session.clear"]


@pytest.mark.parametrize(
    "between",
    [
        {"from": "20", "to": "10"},
        {"from": "nan", "to": "nan"},
        {"from": "-inf", "to": "inf"},
        {"from": "-9", "to": "-1"},
        {"from": "20.2", "to": "1e300"},
        {"from": "", "to": ""},
        {"to": "5"},
        {"from": "0x0", "to": "99"},
        {"from": "0", "to": "99", "began_at": ""},
        {"from": "0", "to": "99", "began_at": "yesterday"},
    ],
)
def test_moments_that_hold_nothing_delete_nothing(
    person_with: PersonWith, ours: Tenant, between: dict[str, str]
) -> None:
    _print_pieces(ours.session)
    client = person_with(*RIGHTS, "clear_output")
    said = client.post(f"/sessions/{ours.session.pk}/replay/erase/", between, follow=True).text
    assert "Nothing is deleted" in said
    assert OutputChunk.objects.filter(session=ours.session).count() == 3
    assert not AuditEvent.objects.filter(action__startswith="session.").exists()


@pytest.mark.parametrize("wanted", ["cast", "text", "raw"])
def test_a_download_holds_what_was_stored_when_it_began(
    person_with: PersonWith, ours: Tenant, wanted: str
) -> None:
    _print_pieces(ours.session)
    client = person_with(*RIGHTS)
    answer = client.post(f"/sessions/{ours.session.pk}/replay/download/", {"format": wanted})
    output_log.append([NewChunk(ours.session.pk, "stdout", 12, 9, b"later")])
    CommandSession.objects.filter(pk=ours.session.pk).update(stdout_next_offset=17)
    detail = {"state": "awaiting_input", "kind": "line", "prompt": "later?"}
    events.append([NewEvent(ours.session.pk, "prompt", 17, detail=detail)])
    text = read(answer)
    assert "six" in text
    assert "later" not in text
