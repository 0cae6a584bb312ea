"""Each result says what to do next."""

from typing import Any

import pytest

from projects.sessions.answers.hints import abnormal_end, hint_for, stopped_hint
from projects.sessions.answers.results import Prompt


def _hint(state: Any, **fields: Any) -> str:
    return hint_for(
        state,
        **{
            "prompt": None,
            "end_reason": None,
            "exit_code": None,
            "signal": None,
            "is_online": True,
            **fields,
        },
    )


@pytest.mark.parametrize(
    ("kind", "named"),
    [
        ("line", "input_text"),
        ("secret", "Never guess"),
        ("key", "keys"),
        ("screen", "view='screen'"),
        ("shell", "exit"),
    ],
)
def test_every_kind_of_prompt_says_how_to_answer_it(kind: Any, named: str) -> None:
    certain = _hint("awaiting_input", prompt=Prompt(kind=kind, text="? ", evidence="kernel"))
    guessed = _hint("awaiting_input", prompt=Prompt(kind=kind, text="? ", evidence="heuristic"))
    assert named in certain
    assert guessed.startswith(certain)
    assert "guess" in guessed.removeprefix(certain)


@pytest.mark.parametrize("kind", ["line", "secret", "shell"])
def test_text_without_enter_is_told_to_be_entered_where_lines_are_read(kind: Any) -> None:
    prompt = Prompt(kind=kind, text="? ", evidence="kernel")
    entered = _hint("awaiting_input", prompt=prompt)
    unentered = _hint("awaiting_input", prompt=prompt, is_unentered=True)
    assert unentered.endswith(entered)
    assert "input_text='\\n'" in unentered.removesuffix(entered)


@pytest.mark.parametrize("kind", ["key", "screen"])
def test_keys_are_not_told_to_be_entered(kind: Any) -> None:
    prompt = Prompt(kind=kind, text="", evidence="kernel")
    assert _hint("awaiting_input", prompt=prompt, is_unentered=True) == _hint(
        "awaiting_input", prompt=prompt
    )


def test_a_question_of_a_host_that_is_away_has_to_wait() -> None:
    prompt = Prompt(kind="line", text="? ", evidence="kernel")
    assert "out of reach" in _hint("awaiting_input", prompt=prompt, is_online=False)
    assert "out of reach" not in _hint("awaiting_input", prompt=prompt)


def test_a_running_program_names_the_tool_that_waits_on() -> None:
    assert "send_command_input(input_text=''" in _hint("running")
    assert "out of reach" in _hint("running", is_online=False)


@pytest.mark.parametrize(
    ("fields", "named"),
    [
        ({"end_reason": "exited", "exit_code": 0}, "exited with code 0."),
        ({"end_reason": "exited", "exit_code": 3}, "code 3. Its output may say why."),
        ({"end_reason": "exited", "signal": "SIGSEGV"}, "SIGSEGV"),
        ({"end_reason": "terminated", "signal": "SIGTERM"}, "terminated"),
        ({"end_reason": "timed_out"}, "lifetime_seconds"),
        ({"end_reason": "lost"}, "rebooted"),
        ({"end_reason": "start_failed"}, "not be started"),
        ({"end_reason": "expired"}, "not started"),
    ],
)
def test_an_end_says_how_it_came(fields: dict[str, Any], named: str) -> None:
    assert named in _hint("exited", **fields)


@pytest.mark.parametrize("reason", ["exited", "terminated", "timed_out", "lost"])
def test_an_end_names_what_is_still_running(reason: str) -> None:
    hint = _hint("exited", end_reason=reason, exit_code=0, survivors=("bash[71]", "sleep[72]"))
    assert "bash[71], sleep[72]" in hint
    assert "The session was terminated." not in hint
    assert "not known" in _hint("exited", end_reason=reason, exit_code=0, survivors=None)
    assert "running on the host" not in _hint(
        "exited", end_reason=reason, exit_code=0, survivors=()
    )


def test_a_stop_says_what_is_left_and_nothing_if_nothing_is() -> None:
    assert "bash[71]" in stopped_hint(["bash[71]"])
    assert "not known" in stopped_hint(None)
    assert stopped_hint(()) == ""


def test_a_start_that_nobody_confirmed_is_neither_running_nor_undone() -> None:
    waiting, lost = (
        _hint("running", is_confirmed=False),
        _hint("exited", end_reason="lost", is_confirmed=False),
    )
    assert "has not said yet" in waiting
    assert "may have run" in lost
    for hint in (waiting, lost):
        assert "Still running" not in hint
        assert "goes on there" not in hint


@pytest.mark.parametrize(
    ("end_reason", "is_confirmed", "code"),
    [
        ("lost", True, "LOST"),
        ("lost", False, "START_LOST"),
        ("timed_out", True, "TIMED_OUT"),
        ("terminated", True, "TERMINATED"),
    ],
)
def test_an_end_that_is_not_the_programs_own_has_a_code(
    end_reason: str, is_confirmed: bool, code: str
) -> None:
    found = abnormal_end(end_reason, "idle", is_confirmed=is_confirmed)
    assert found is not None
    assert found[0] == code


def test_an_end_of_the_programs_own_is_no_failure() -> None:
    assert abnormal_end("exited", "program", is_confirmed=True) is None


def test_the_hint_of_a_stop_is_whole_sentences() -> None:
    assert stopped_hint(()) == ""
    assert stopped_hint(None) == (
        "It is not known whether processes of the program still run on the host."
    )
    assert stopped_hint(("sleep[72]",)) == (
        "The program ended, but processes of it are left. Still running on the host: sleep[72]. "
        "A process of another user can be ended by that user or by root only."
    )


@pytest.mark.parametrize(
    ("kind", "named"),
    [
        ("interactive", "longer lifetime_seconds"),
        ("background", "longer lifetime, in milliseconds"),
        ("one_shot", "longer timeout_seconds"),
        ("job", "longer timeout if"),
    ],
)
def test_the_end_of_a_lifetime_names_the_argument_of_its_tool(kind: str, named: str) -> None:
    hint = _hint("exited", end_reason="timed_out", kind=kind, survivors=("sleep[72]",))
    assert named in hint
    assert "sleep[72]" in hint
    assert ("lifetime_seconds" in hint) is (kind == "interactive")
