"""What a model types for a secret stands in no row in clear, before its call and after it."""

import json
from collections.abc import Sequence
from datetime import timedelta
from typing import Any
from uuid import UUID

import pytest
from django.utils import timezone

from agent import services
from agent.llm.conversation import Answer, Call
from agent.models import AgentStep
from agent.runs import answered_calls, records, unseen
from projects.models import CommandSession
from projects.storage.sealing import open_sealed
from tests.support.rows import make_controller, make_session

pytestmark = pytest.mark.django_db


@pytest.fixture
def session() -> CommandSession:
    host = make_controller(lease_expires_at=timezone.now() + timedelta(hours=1))
    return make_session(host, terminal_state="awaiting_input", terminal_kind="shell")


@pytest.fixture
def claimed(session: CommandSession) -> tuple[UUID, UUID]:
    services.run_submit(project=session.project, task="t", actor="test", model="scripted:demo")
    found = records.run_claim(30.0)
    assert found is not None
    return found


def _typing(session: CommandSession, *texts: str) -> tuple[Call, ...]:
    return tuple(
        Call("1", "send_command_input", {"session_id": str(session.id), "input_text": text})
        for text in texts
    )


def _answered(
    claimed: tuple[UUID, UUID], calls: Sequence[Call], native: Any = None
) -> list[AgentStep]:
    run, steps = records.run_loaded(claimed[0])
    records.step_answered(
        *claimed,
        number=1,
        said_before=(),
        is_nudge=False,
        answer=Answer(calls=tuple(calls), native=native),
        hidden=unseen.withheld(run.project_id, calls, steps),
    )
    return records.run_loaded(claimed[0])[1]


def _result(session: CommandSession, kind: str) -> dict[str, Any]:
    body = {"session_id": str(session.id), "prompt": {"kind": kind, "text": "? "}}
    return {"body": body, "is_error": False, "seconds": 0.1}


def _typed(claimed: tuple[UUID, UUID]) -> list[str]:
    """The input of each call as the row has it."""
    (step,) = records.run_loaded(claimed[0])[1]
    return [call["arguments"]["input_text"] for call in step.calls]


def test_later_input_of_one_answer_is_withheld_until_its_turn(
    claimed: tuple[UUID, UUID], session: CommandSession
) -> None:
    steps = _answered(claimed, _typing(session, "sudo ls\n", "swordfish\n", "ls\n"))
    hidden = "(hidden input)"
    assert _typed(claimed) == ["sudo ls\n", hidden, hidden]
    records.step_result(*claimed, steps, 0, _result(session, "secret"), is_hidden=False)
    assert _typed(claimed) == ["sudo ls\n", hidden, hidden]
    records.step_result(*claimed, steps, 1, _result(session, "shell"), is_hidden=True)
    assert _typed(claimed) == ["sudo ls\n", hidden, "ls\n"]
    records.step_result(*claimed, steps, 2, _result(session, "shell"), is_hidden=False)
    row = AgentStep.objects.values("calls", "results", "native", "text").get()
    assert "swordfish" not in json.dumps(row)
    assert [call.arguments for call in answered_calls.calls_of(steps[-1])] == [
        call.arguments for call in _typing(session, "sudo ls\n", "swordfish\n", "ls\n")
    ]


def test_a_prompt_since_the_newest_result_is_known_from_its_session(
    claimed: tuple[UUID, UUID], session: CommandSession
) -> None:
    CommandSession.objects.update(terminal_kind="secret")
    _answered(claimed, _typing(session, "swordfish\n"))
    assert _typed(claimed) == ["(hidden input)"]


def test_a_result_that_is_stored_again_stands_there_once(
    claimed: tuple[UUID, UUID], session: CommandSession
) -> None:
    steps = _answered(claimed, _typing(session, "ls\n"))
    for _attempt in range(2):
        records.step_result(*claimed, steps, 0, _result(session, "shell"), is_hidden=False)
    (step,) = records.run_loaded(claimed[0])[1]
    assert len(step.results) == 1


@pytest.mark.parametrize("hidden", [None, 0, 1])
def test_reasoning_comes_back_with_an_answer_that_hides_nothing_in_the_end(
    claimed: tuple[UUID, UUID], session: CommandSession, hidden: int | None
) -> None:
    reasoning = [{"kind": "response", "parts": ["think", "pwd\n"]}]
    steps = _answered(claimed, _typing(session, "ls\n", "pwd\n"), reasoning)
    assert AgentStep.objects.get().native is None
    for index in range(2):
        is_hidden = index == hidden
        records.step_result(*claimed, steps, index, _result(session, "shell"), is_hidden=is_hidden)
    _, steps = records.run_loaded(claimed[0])
    records.step_completed(*claimed, steps[-1])
    step = AgentStep.objects.get()
    assert step.native == (reasoning if hidden is None else None)
    assert step.sealed is None


@pytest.mark.parametrize("native", [None, [{"kind": "response"}]])
def test_what_is_sealed_without_reasoning_is_what_older_servers_read(
    claimed: tuple[UUID, UUID], session: CommandSession, native: Any
) -> None:
    calls = _typing(session, "ls\n", "pwd\n")
    (step,) = _answered(claimed, calls, native)
    sealed = json.loads(open_sealed(step.sealed))
    assert isinstance(sealed, list) is (native is None)
    assert answered_calls.calls_of(step) == calls
