"""agent_runs and answer_approval: what they list, in which order, and how a run is named."""

import json
from io import StringIO
from uuid import UUID

import pytest
from django.core.management import CommandError, call_command
from django.utils import timezone

from agent.models import AgentRun
from projects.models import Project
from tests.support.rows import make_approval

pytestmark = pytest.mark.django_db

_LIMITS = ("max_steps", "max_tokens", "max_cost_cents", "output_bytes", "max_run_seconds")
_FIRST, _SECOND = UUID("abcdef01" + "0" * 24), UUID("abcdef02" + "0" * 24)


def _printed(*arguments: str) -> str:
    call_command(*arguments, stdout=(out := StringIO()))
    return out.getvalue()


def _run(project: Project, run_id: UUID, **fields: object) -> AgentRun:
    asked = {"task": f"task {run_id}", "model": "scripted:demo", **fields}
    return AgentRun.objects.create(id=run_id, project=project, **dict.fromkeys(_LIMITS, 1), **asked)


@pytest.fixture
def runs() -> list[AgentRun]:
    """Two runs of two projects whose ids begin alike; the second is newer."""
    return [
        _run(Project.objects.create(name="one"), _FIRST, state=AgentRun.State.FINISHED),
        _run(Project.objects.create(name="two"), _SECOND, state=AgentRun.State.QUEUED),
    ]


def _listed(*arguments: str) -> list[str]:
    return [row["id"] for row in json.loads(_printed("agent_runs", "--json", *arguments))]


def test_an_empty_list_is_one_document_all_the_same() -> None:
    assert json.loads(_printed("agent_runs", "--json")) == []
    assert json.loads(_printed("answer_approval", "--json")) == []
    assert _printed("agent_runs") == _printed("answer_approval") == ""


@pytest.mark.usefixtures("runs")
def test_runs_are_listed_newest_first_and_narrowed() -> None:
    first, second = str(_FIRST), str(_SECOND)
    assert _listed() == [second, first]
    assert _listed("--limit", "1") == [second]
    assert _listed("--project", "one") == [first]
    assert _listed("--state", "finished") == [first]
    assert _listed("--state", "finished", "--state", "queued") == [second, first]
    assert _listed("--state", "running") == []
    assert len(_printed("agent_runs").splitlines()) == 2


@pytest.mark.usefixtures("runs")
@pytest.mark.parametrize("length", [8, 9, 13, 36])
def test_a_unique_prefix_names_a_run_in_any_case(length: int) -> None:
    for name in (str(_FIRST)[:length], str(_FIRST)[:length].upper()):
        assert json.loads(_printed("agent_runs", name, "--json"))["id"] == str(_FIRST)


@pytest.mark.usefixtures("runs")
@pytest.mark.parametrize("name", ["abcdef0", "a", "", " ", "%", "_", "0", "abcdef01-1", "x" * 5000])
def test_a_prefix_of_several_runs_or_of_none_names_none(name: str) -> None:
    for arguments in (("agent_runs",), ("run_agent", "--follow"), ("run_agent", "--stop")):
        if name or arguments[0] == "agent_runs":
            with pytest.raises(CommandError, match="RUN_NOT_FOUND") as refused:
                call_command(*arguments, name)
            assert refused.value.returncode == 4
    assert set(AgentRun.objects.values_list("state", flat=True)) == {"finished", "queued"}


def test_only_what_is_still_asked_is_listed(runs: list[AgentRun]) -> None:
    asked, expired = (make_approval(run.project, asked_by=f"agent:{run.id}") for run in runs)
    type(expired).objects.filter(pk=expired.pk).update(expires_at=timezone.now())
    (row,) = json.loads(_printed("answer_approval", "--json"))
    assert row["id"] == asked.pk
    assert "answered" in _printed("answer_approval", str(asked.pk), "--deny", "--reason", "no")
    assert "it is over" in _printed("answer_approval", str(asked.pk), "--approve")
    asked.refresh_from_db()
    assert (asked.answer, asked.reason) == ("denied", "no")
    assert json.loads(_printed("answer_approval", "--json")) == []


def test_a_listed_question_names_the_files_and_the_notices(runs: list[AgentRun]) -> None:
    asked = make_approval(
        runs[0].project,
        arguments={"command": "perl -MDeploy ./tool && git pull"},
        files=[["/usr/bin/perl", "5e"], ["/a/\u202etool", ""]],
        live_programs=1,
    )
    listed = _printed("answer_approval").splitlines()
    assert listed[0].endswith("(token:agent)")
    assert listed[1:3] == [
        "  may run /usr/bin/perl (SHA-256 5e)",
        "  may run /a/\\u202etool (content not read)",
    ]
    notices = ["could change files", "cannot be told from the line", "and not again"]
    assert [part in line for part, line in zip(notices, listed[3:], strict=True)] == [True] * 3
    (row,) = json.loads(_printed("answer_approval", "--json"))
    assert row["files"][0] == {"path": "/usr/bin/perl", "content": "SHA-256 5e"}
    assert [f"  notice: {notice}" for notice in row["notices"]] == listed[3:]
    type(asked).objects.filter(pk=asked.pk).update(files=None)
    assert "  the host named no file: what runs is not compared" in _printed("answer_approval")


@pytest.mark.parametrize("answer", [["--approve"], ["--deny"], []])
def test_the_whole_call_is_printed_before_it_is_answered(
    runs: list[AgentRun], answer: list[str]
) -> None:
    asked = make_approval(
        runs[0].project,
        "start_command",
        {"command": "sh ./\u202etool", "env": {"A": "1\x1b[2J"}, "cwd": "/srv", "requestId": "x"},
        host="web-1\x07",
        files=[["/usr/bin/sh", "5e"]],
        live_programs=1,
        risk_reason="it may do anything",
    )
    out = StringIO()
    if answer:
        call_command("answer_approval", str(asked.pk), *answer, stdout=out)
    else:
        with pytest.raises(CommandError, match="--approve or --deny"):
            call_command("answer_approval", str(asked.pk), stdout=out)
    printed = out.getvalue().splitlines()
    assert printed[:7] == [
        f"approval #{asked.pk}: start_command, asked by token:agent in one",
        "  command: sh ./\\u202etool",
        "  cwd: /srv",
        "  env: A: 1\\x1b[2J",
        "  risk: unclear: it may do anything",
        "  on web-1\\x07",
        "  may run /usr/bin/sh (SHA-256 5e)",
    ]
    assert "could change files before you answer" in printed[7]
    assert printed[8:] == (["answered"] if answer else [])


def test_what_is_typed_or_stopped_is_printed_with_its_place(runs: list[AgentRun]) -> None:
    project = runs[0].project
    given = {"session_id": str(_FIRST), "input_text": "rm -r\r"}
    about = {"session_id": _FIRST, "session_command": "bash -i", "prompt": "line: Drop it? \x9b"}
    typed = make_approval(project, "send_command_input", given, **about)
    monitor = {"session_id": str(_SECOND)}
    stopped = make_approval(project, "stop_session_monitor", monitor, session_command="/var/log/x")
    shown = _printed("answer_approval", str(typed.pk), "--deny").splitlines()
    assert shown[1] == "  input_text: rm -r\\r"
    assert shown[3:5] == [
        f"  in session {_FIRST} of 'bash -i'",
        f"  at the prompt {'line: Drop it? ' + chr(92) + 'x9b'!r}",
    ]
    assert "[of the log /var/log/x]" in _printed("answer_approval")
    shown = _printed("answer_approval", str(stopped.pk), "--deny").splitlines()
    assert shown[1:4:2] == [f"  session_id: {_SECOND}", "  of the log /var/log/x"]


def test_a_call_that_nobody_can_read_is_said_to_be_that(runs: list[AgentRun]) -> None:
    asked = make_approval(runs[0].project, sealed_arguments=b"of a key that is gone")
    assert "cannot be shown: the server has no key" in _printed("answer_approval")
    out = StringIO()
    with pytest.raises(CommandError, match="CALL_NOT_SHOWN"):
        call_command("answer_approval", str(asked.pk), "--approve", stdout=out)
    assert "  call: cannot be shown: the server has no key" in out.getvalue()
