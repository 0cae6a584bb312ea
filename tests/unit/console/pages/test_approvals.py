"""The queue of approvals: what a person sees of a call, and their answer."""

from typing import Any

import pytest
from cryptography.fernet import Fernet

from projects.models import Approval, AuditEvent
from tests.support.rows import make_approval
from tests.unit.console.conftest import PersonWith, Tenant

RIGHTS = ("view_approval", "answer_approval")


@pytest.fixture
def asked(ours: Tenant) -> Approval:
    arguments = {"command": "echo \x1b[31m<b>\u202e\nrm x", "env": {"A\tB": "1"}}
    return make_approval(ours.project, arguments=arguments, host="web-17", risk_reason="runs 'rm'")


def test_a_call_is_shown_exactly(person_with: PersonWith, asked: Approval) -> None:
    client = person_with(*RIGHTS)
    assert "echo" in client.get("/approvals/").text
    text = client.get(f"/approvals/{asked.pk}/").text
    assert "echo <mark>\\x1b</mark>[31m&lt;b&gt;<mark>\\u202e</mark><mark>\\n\n</mark>rm x" in text
    assert "A\\tB" in text
    for shown in ("web-17", "unclear", "runs &#x27;rm&#x27;", "token:agent"):
        assert shown in text
    assert "\u202e" not in text


def test_a_letter_that_looks_like_another_is_marked(person_with: PersonWith, ours: Tenant) -> None:
    asked = make_approval(ours.project, arguments={"command": "deploy pr\u043eduction"})
    client = person_with(*RIGHTS)
    assert "deploy pr<mark>\\u043e</mark>duction" in client.get(f"/approvals/{asked.pk}/").text
    assert "deploy pr\\u043eduction" in client.get("/approvals/").text


@pytest.mark.parametrize(
    ("line", "env", "is_told"),
    [
        ("cd /b; sh deploy.sh", None, False),
        ("script=deploy.sh; sh ~/$script", {"LANG": "C"}, False),
        ('cd "$place"; sh deploy.sh', None, True),
        ('sh "$1"', None, True),
        ("sh deploy.sh", {"HOME": "/b"}, True),
        ("man ls", {"PAGER": "/b/deploy.sh"}, True),
    ],
)
def test_a_line_that_runs_what_nobody_can_tell_says_so(
    person_with: PersonWith, ours: Tenant, line: str, env: dict[str, str] | None, is_told: bool
) -> None:
    files = [["/a/deploy.sh", "5e"], ["/b/deploy.sh", "5f"]]
    asked = make_approval(ours.project, arguments={"command": line, "env": env}, files=files)
    text = person_with(*RIGHTS).get(f"/approvals/{asked.pk}/").text
    assert ("cannot be told from the line" in text) == is_told
    assert text.count("<dt>May run</dt>") == 1
    assert "/b/deploy.sh" in text


def test_a_file_that_the_host_did_not_read_is_no_whole_answer(
    person_with: PersonWith, ours: Tenant
) -> None:
    files = [["/usr/bin/node", "5e"], ["/a/deploy", ""]]
    asked = make_approval(ours.project, arguments={"command": "node deploy"}, files=files)
    text = person_with(*RIGHTS).get(f"/approvals/{asked.pk}/").text
    assert "could not find or read one of them" in text
    assert "content not read" in text


@pytest.mark.parametrize(
    ("line", "changes"), [("git pull && ./deploy.sh", True), ("cd /srv && ./deploy.sh", False)]
)
def test_a_line_that_changes_what_it_runs_says_so(
    person_with: PersonWith, ours: Tenant, line: str, changes: bool
) -> None:
    asked = make_approval(ours.project, arguments={"command": line})
    text = person_with(*RIGHTS).get(f"/approvals/{asked.pk}/").text
    assert ("when the line starts, and not again" in text) == changes


def test_what_is_no_part_of_the_question_is_left_out(person_with: PersonWith, ours: Tenant) -> None:
    given = {"session_id": str(ours.session.pk), "terminate": True, "wait_seconds": 7.5}
    asked = make_approval(ours.project, "send_command_input", given, session_id=ours.session.pk)
    client = person_with(*RIGHTS)
    assert "send_command_input terminate True" in client.get("/approvals/").text
    assert "7.5" not in client.get(f"/approvals/{asked.pk}/").text


def test_a_project_of_which_many_calls_wait_hides_no_other(
    person_with: PersonWith, ours: Tenant, theirs: Tenant
) -> None:
    client = person_with(*RIGHTS, "view_all_projects")
    many = [make_approval(ours.project) for _ in range(110)]
    few = [make_approval(theirs.project) for _ in range(2)]
    text = client.get("/approvals/").text
    shown = [f'href="/approvals/{row.pk}/"' in text for row in (*many, *few)]
    assert shown == [True] * 98 + [False] * 12 + [True] * 2
    assert text.index(f"/approvals/{many[97].pk}/") < text.index(f"/approvals/{few[0].pk}/")


def test_an_answer_is_given_once(person_with: PersonWith, asked: Approval) -> None:
    client = person_with(*RIGHTS)
    page = f"/approvals/{asked.pk}/"
    assert client.get(f"{page}answer/").status_code == 405
    denied = client.post(f"{page}answer/", {"answer": "deny", "reason": "not now"}, follow=True)
    assert "Denied" in denied.text
    again = client.post(f"{page}answer/", {"answer": "approve"}, follow=True)
    assert "was over already" in again.text
    asked.refresh_from_db()
    assert (asked.answer, asked.answered_by, asked.reason) == ("denied", "admin:ann", "not now")
    assert "not now" in client.get(page).text
    assert AuditEvent.objects.get(action="approval.answer").actor == "admin:ann"


def test_who_may_look_may_not_answer(person_with: PersonWith, asked: Approval) -> None:
    client = person_with("view_approval")
    page = f"/approvals/{asked.pk}/"
    assert "Approve once" not in client.get(page).text
    assert client.post(f"{page}answer/", {"answer": "approve"}).status_code == 403
    asked.refresh_from_db()
    assert asked.answer == "pending"


def test_nobody_answers_for_their_own_call_where_four_eyes_are_wanted(
    person_with: PersonWith, asked: Approval
) -> None:
    Approval.objects.update(owner="admin:ann")
    asked.project.wants_four_eyes = True
    asked.project.save()
    client = person_with(*RIGHTS)
    assert "Approve once" not in client.get(f"/approvals/{asked.pk}/").text
    answer = client.post(f"/approvals/{asked.pk}/answer/", {"answer": "approve"}, follow=True)
    assert "OWN_CALL" in answer.text
    asked.refresh_from_db()
    assert asked.answer == "pending"


def test_a_call_that_nobody_can_read_is_denied_and_never_approved(
    person_with: PersonWith, asked: Approval, settings: Any
) -> None:
    settings.ENCRYPTION_KEYS = [Fernet.generate_key().decode()]
    client = person_with(*RIGHTS)
    assert "cannot be shown" in client.get("/approvals/").text
    page = f"/approvals/{asked.pk}/"
    assert "cannot be shown" in client.get(page).text
    assert (
        "CALL_NOT_SHOWN" in client.post(f"{page}answer/", {"answer": "approve"}, follow=True).text
    )
    asked.refresh_from_db()
    assert asked.answer == "pending"
    assert "Denied" in client.post(f"{page}answer/", {"answer": "deny"}, follow=True).text


def test_the_header_counts_what_waits(
    person_with: PersonWith, asked: Approval, theirs: Tenant
) -> None:
    make_approval(theirs.project)
    client = person_with(*RIGHTS)
    assert '<strong class="person-word">1</strong>' in client.get("/approvals/").text
    client.post(f"/approvals/{asked.pk}/answer/", {"answer": "approve"})
    assert '<strong class="person-word">' not in client.get("/approvals/").text


def test_the_screen_that_is_typed_into_is_shown_and_the_look_is_on_record(
    person_with: PersonWith, ours: Tenant
) -> None:
    asked = make_approval(
        ours.project,
        "send_command_input",
        {"session_id": str(ours.session.pk), "input_text": "y\n"},
        session_id=ours.session.pk,
        prompt="line: Go on?",
    )
    client = person_with(*RIGHTS, "view_transcript", "view_commandsession")
    assert "Go on?" in client.get(f"/approvals/{asked.pk}/").text
    assert AuditEvent.objects.get(action="transcript.view").detail == {"approval": asked.pk}


def test_a_prompt_is_shown_to_those_who_may_read_screens_only(
    person_with: PersonWith, ours: Tenant
) -> None:
    asked = make_approval(ours.project, session_id=ours.session.pk, prompt="line: Go on?")
    text = person_with(*RIGHTS).get(f"/approvals/{asked.pk}/").text
    assert "Go on?" not in text
    assert "you may not read screens" in text


def test_the_log_of_a_monitor_is_shown_whole(person_with: PersonWith, ours: Tenant) -> None:
    log_file = f"/logs/{'a' * 200}/\u202evictim.log"
    asked = make_approval(ours.project, "stop_session_monitor", session_command=log_file)
    text = person_with(*RIGHTS).get(f"/approvals/{asked.pk}/").text
    assert f"<dt>File</dt><dd><code>/logs/{'a' * 200}/\\u202evictim.log</code>" in text
