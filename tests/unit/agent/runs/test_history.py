"""Facts about the session of a call, taken from a run's own steps."""

from typing import Any

import pytest

from agent.llm.conversation import Call
from agent.models import AgentStep
from agent.runs.history import is_hidden, standing_of

OWN, OTHER = "11111111-1111-4111-8111-111111111111", "22222222-2222-4222-8222-222222222222"
_SHELL = {"session_id": OWN, "prompt": {"kind": "shell", "text": "$ "}}


def _step(
    number: int,
    name: str,
    arguments: dict[str, Any],
    body: dict[str, Any],
    *,
    is_error: bool = False,
) -> AgentStep:
    result = {"body": body, "is_error": is_error, "seconds": 0.1}
    return AgentStep(
        number=number, calls=[{"id": "x", "name": name, "arguments": arguments}], results=[result]
    )


START = _step(1, "start_interactive_command", {"command": "bash"}, _SHELL)
TYPING = Call("y", "send_command_input", {"session_id": OWN, "input_text": "ls\n"})


def _typed(
    body: dict[str, Any] | None = None, *, is_error: bool = False, **arguments: Any
) -> AgentStep:
    return _step(
        2, "send_command_input", {"session_id": OWN, **arguments}, body or _SHELL, is_error=is_error
    )


def test_a_run_owns_the_session_it_started_and_an_approval_vouches_for_it() -> None:
    standing = standing_of(TYPING, [START], set())
    assert (standing.prompt_kind, standing.is_own, standing.is_vouched) == ("shell", True, False)
    assert standing_of(TYPING, [START], {(1, 0)}).is_vouched


def test_a_session_that_only_an_answer_names_is_not_the_runs_own() -> None:
    seen = _step(
        1, "get_session", {"session_id": OTHER}, {"session_id": OTHER, "prompt": {"kind": "shell"}}
    )
    refused = _step(
        2,
        "start_interactive_command",
        {},
        {"code": "SESSION_LIMIT_REACHED", "session_id": OTHER},
        is_error=True,
    )
    other = Call("y", "send_command_input", {"session_id": OTHER, "input_text": "ls\n"})
    assert not standing_of(other, [seen, refused], {(1, 0), (2, 0)}).is_own


@pytest.mark.parametrize(
    "since",
    [
        _typed(input_text="rm -r"),
        _typed(keys=["up"]),
        _typed(input_text="(hidden input)"),
        _typed(input_text="ls\n", body={"code": "STORAGE_UNAVAILABLE"}, is_error=True),
        _typed(input_text="", body={"code": "SESSION_TAKEN_OVER"}, is_error=True),
        _typed(input_text="sleep 9\n", body={"session_id": OWN, "state": "running"}),
        _typed(
            input_text="cat <<E\n",
            body={"session_id": OWN, "prompt": {"kind": "shell", "text": "> "}},
        ),
        _typed(
            input_text="echo '\n",
            body={"session_id": OWN, "prompt": {"kind": "shell", "text": "x\nquote> "}},
        ),
        _typed(
            input_text="python3\n",
            body={"session_id": OWN, "prompt": {"kind": "line", "text": ">>> "}},
        ),
    ],
)
def test_a_shell_prompt_counts_only_while_its_line_is_empty(since: AgentStep) -> None:
    assert standing_of(TYPING, [START, since], set()).prompt_kind != "shell"


def test_what_was_typed_before_a_wait_still_stands_in_the_line() -> None:
    waited = _step(3, "send_command_input", {"session_id": OWN, "input_text": ""}, _SHELL)
    assert standing_of(TYPING, [START, _typed(input_text="rm -r"), waited], set()).prompt_kind == ""
    assert (
        standing_of(TYPING, [START, _typed(input_text="ls\n"), waited], set()).prompt_kind
        == "shell"
    )


def test_what_answers_a_question_for_a_secret_is_hidden() -> None:
    asks = _typed(
        input_text="sudo ls\n",
        body={"session_id": OWN, "prompt": {"kind": "secret", "text": "Password: "}},
    )
    assert is_hidden(TYPING, [START, asks])
    assert not is_hidden(TYPING, [START])
