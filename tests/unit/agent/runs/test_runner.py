"""A run carries out what its model wrote exactly, whatever of it a row can hold."""

import asyncio
from collections.abc import Sequence
from datetime import timedelta
from typing import Any
from uuid import UUID, uuid4

import pytest
from django.utils import timezone

from agent import services, worker
from agent.llm.conversation import Answer, Call, Conversation, OfferedTool, OnText
from agent.models import AgentRun, AgentStep
from agent.runs import records
from agent.runs.runner import AgentRunner
from agent.runs.toolbox import Toolbox
from controller_client.protocol.values import NAMES_FILES
from projects.models import Approval, Project
from projects.monitors import questions
from projects.storage.access import in_database
from projects.tools.base import ToolOutcome
from tests.support.rows import make_controller

pytestmark = pytest.mark.django_db(transaction=True)
_ODD = "a\0b\ud800c"
_STATE = AgentRun.State
_STORED = "a\ufffdb\ufffdc"


class _Model:
    """Says odd things, makes one call with them, and ends the run."""

    def __init__(self, call: Call, *first: Answer) -> None:
        self._answers = [
            *first,
            Answer(text=_ODD, calls=(call,), native=[{"thought": _ODD}]),
            Answer(calls=(Call("2", "finish_task", {"success": True, "summary": _ODD}),)),
        ]

    async def answer(
        self, _conversation: Conversation, _tools: Sequence[OfferedTool], _on_text: OnText
    ) -> Answer:
        return self._answers.pop(0)

    async def close(self) -> None:
        pass


def _claimed(approvals: str) -> tuple[UUID, UUID]:
    host = make_controller(
        lease_expires_at=timezone.now() + timedelta(hours=1), capabilities=["pty", NAMES_FILES]
    )
    Project.objects.update(run_approvals=approvals)
    services.run_submit(project=host.project, task="tidy up", actor="test", model="scripted:other")
    claimed = records.run_claim(30.0)
    assert claimed is not None
    return claimed


async def test_odd_text_of_a_model_is_stored_and_its_call_made_exactly(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    made: list[Call] = []

    async def carry_out(_toolbox: Toolbox, call: Call, **_fields: Any) -> ToolOutcome:
        made.append(call)
        return ToolOutcome({"output": _ODD})

    monkeypatch.setattr(Toolbox, "carry_out", carry_out)
    typed = "y\0\N{GRINNING FACE}"
    call = Call(_ODD, "write_input", {"sessionId": "1", "input": typed, "eof": float("nan")})
    claimed = await in_database(_claimed, "auto")
    await AgentRunner(*claimed, lambda _name: _Model(call)).drive()
    run, (step, _last) = await in_database(records.run_loaded, claimed[0])
    assert (run.stop_reason, run.report) == ("done", _STORED)
    assert [(one.id, (one.arguments or {})["input"]) for one in made] == [(_ODD, typed)]
    arguments = {"sessionId": "1", "input": "y\ufffd\N{GRINNING FACE}", "eof": "NaN"}
    assert step.calls == [{"id": _STORED, "name": "write_input", "arguments": arguments}]
    assert (step.text, step.native, step.sealed) == (_STORED, None, None)
    assert step.results[0]["body"] == {"output": _STORED}


_CUT = Answer(
    text="I begin",
    calls=(Call("1", "execute_command", {"command": "true"}),),
    native=[{"args": "true"}],
    cut_by="the limit of its length",
)


@pytest.mark.parametrize(("cuts", "end"), [(2, "done"), (3, "answer_cut")])
async def test_no_call_of_an_answer_that_was_cut_is_made(
    monkeypatch: pytest.MonkeyPatch, cuts: int, end: str
) -> None:
    made: list[str] = []

    async def carry_out(_toolbox: Toolbox, call: Call, **_fields: Any) -> ToolOutcome:
        made.append(call.name)
        return ToolOutcome({})

    monkeypatch.setattr(Toolbox, "carry_out", carry_out)
    claimed = await in_database(_claimed, "auto")
    model = _Model(Call("1", "list_sessions", {}), *[_CUT] * cuts)
    await AgentRunner(*claimed, lambda _name: model).drive()
    run, steps = await in_database(records.run_loaded, claimed[0])
    assert (run.stop_reason, made) == (end, ["list_sessions"] if end == "done" else [])
    assert [(step.text, step.calls, step.native) for step in steps[:cuts]] == [
        ("I begin", [], None)
    ] * cuts
    assert all("was cut off" in step.said_before[0] for step in steps[1 : cuts + 1])
    if end == "answer_cut":
        await in_database(lambda: services.run_resume(run_id=run.id, actor="test"))
        again = await in_database(records.run_claim, 30.0)
        assert again is not None
        await AgentRunner(*again, lambda _name: model).drive()
        assert (await in_database(records.run_loaded, run.id))[0].stop_reason == "done"


@pytest.mark.parametrize(
    ("tool", "arguments", "code"),
    [
        ("execute_command", {"command": "true \0", "input": "\0", "cwd": "\0"}, ""),
        ("execute_command", {"command": "true", "controller": "\0"}, "CONTROLLER_NOT_FOUND"),
        ("execute_command", {"command": "true", "env": {"A\ud800": ""}}, "MALFORMED_ARGUMENTS"),
        ("start_command", {"command": _ODD}, "MALFORMED_ARGUMENTS"),
        ("write_input", {"sessionId": "\0", "input": "x"}, "INVALID_ARGUMENT"),
        ("\0", {"\0": "\0"}, "UNKNOWN_TOOL"),
    ],
)
async def test_a_person_is_asked_about_an_odd_call_or_it_is_refused(
    monkeypatch: pytest.MonkeyPatch, tool: str, arguments: dict[str, Any], code: str
) -> None:
    monkeypatch.setattr(questions, "ANSWER_SECONDS", 0.0)
    claimed = await in_database(_claimed, "ask-all")
    await AgentRunner(*claimed, lambda _name: _Model(Call("1", tool, arguments))).drive()
    run, steps = await in_database(records.run_loaded, claimed[0])
    assert [result["body"].get("code") for result in steps[0].results] == [code] * bool(code)
    assert run.state == (_STATE.FINISHED if code else _STATE.WAITING), run.report
    assert await in_database(Approval.objects.count) == (not code)


@pytest.mark.parametrize("column", ["draft", "notice"])
def test_odd_words_of_a_model_are_shown_while_it_works(column: str) -> None:
    claimed = _claimed("auto")
    write = {"draft": records.run_drafted, "notice": records.run_noticed}[column]
    write(*claimed, _ODD)
    assert getattr(AgentRun.objects.get(), column) == _STORED
    assert not AgentStep.objects.exists()


async def test_work_between_two_renewals_of_a_lease_counts(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The run waits for a person long before its lease has to be renewed."""
    monkeypatch.setattr(questions, "ANSWER_SECONDS", 0.0)
    claimed = await in_database(_claimed, "ask-all")
    call = Call("1", "execute_command", {"command": "true"})
    await worker.hold(*claimed, make_client=lambda _name: _Model(call))
    run, _steps = await in_database(records.run_loaded, claimed[0])
    assert run.worked_seconds > 0


class _Displaced(_Model):
    """Never answers, and another worker takes the run meanwhile."""

    async def answer(
        self, _conversation: Conversation, _tools: Sequence[OfferedTool], _on_text: OnText
    ) -> Answer:
        await in_database(AgentRun.objects.update, lease=uuid4())
        await asyncio.Event().wait()
        raise AssertionError


async def test_work_under_a_lease_that_is_lost_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(worker, "MOST_BEAT_SECONDS", beat_seconds := 0.2)
    claimed = await in_database(_claimed, "auto")
    call = Call("1", "execute_command", {"command": "true"})
    await worker.hold(*claimed, make_client=lambda _name: _Displaced(call))
    run, _steps = await in_database(records.run_loaded, claimed[0])
    assert run.worked_seconds >= beat_seconds
