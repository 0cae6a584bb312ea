"""Agent runs whose server is killed during a command, a session or an answer of the model."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.agents.commands import Submitter, submitter
from tests.support.agents.fixtures import RUN_SECONDS
from tests.support.agents.model_server import (
    Fails,
    ModelServer,
    Says,
    Script,
    Seen,
    call,
    done,
    in_turn,
)
from tests.support.stack import Stack, running_stack
from tests.support.waiting import wait_until

pytestmark = [pytest.mark.fault, pytest.mark.timeout(900)]


@pytest.fixture
def mortal(models: ModelServer) -> Iterator[Stack]:
    """A stack for one test, on which a lost lease is noticed soon."""
    environment = {
        **models.environment,
        "HOLDLINE_AGENT_LEASE_SECONDS": "3",
        "HOLDLINE_AGENT_POLL_SECONDS": "0.1",
        "HOLDLINE_AGENT_APPROVALS": "auto",
    }
    with running_stack(server_environment=environment) as stack:
        yield stack


@pytest.fixture
def runs(mortal: Stack) -> Iterator[Submitter]:
    """A submitter of runs to the stack."""
    with submitter(mortal) as process:
        yield process


def lines_of(file: Path) -> list[str]:
    """The words that programs have written to ``file``."""
    return file.read_text().split() if file.exists() else []


def _appends(file: Path, word: str, then: str = "") -> Says:
    return call("execute_command", command=f"echo {word} >> {file}{then}")


def _acting(file: Path, gate: Path) -> list[Says | Script]:
    """The answers of a model that runs commands, answers a question, and makes two calls at once.

    The first of the two calls waits until ``gate`` exists.
    """
    asks = (
        f"""bash -c 'echo two >> {file}; read -p "Go on? " answer; """
        f"""echo "three-$answer" >> {file}'"""
    )

    def types(seen: Seen) -> Says:
        return call(
            "send_command_input",
            session_id=seen.value("session_id"),
            input_text="yes\n",
            wait_seconds=20,
        )

    waiting = _appends(file, "four", f"; until [ -e {gate} ]; do sleep 0.1; done")
    return [
        _appends(file, "one"),
        call("start_interactive_command", command=asks, wait_seconds=20),
        types,
        Says("Two at once.", (*waiting.calls, *_appends(file, "five").calls)),
        done("all of it"),
    ]


def test_a_killed_server_loses_no_step_and_runs_nothing_twice(
    mortal: Stack, models: ModelServer, runs: Submitter, tmp_path: Path
) -> None:
    acted, thought, gate = tmp_path / "acted", tmp_path / "thought", tmp_path / "gate"
    models.scripts["acting"] = in_turn(*_acting(acted, gate))
    asked = models.requests["thinking"]

    def silent_once(seen: Seen) -> Says | Fails:
        if len(asked) == 2:
            return Fails("silence")
        answers = (_appends(thought, "one"), _appends(thought, "two"), done())
        return answers[seen.turns]

    models.scripts["thinking"] = silent_once
    acting, thinking = runs.submit("openai:acting"), runs.submit("anthropic:thinking")
    wait_until(lambda: "four" in lines_of(acted), RUN_SECONDS, "a command to be in the middle")
    wait_until(lambda: len(asked) == 2, RUN_SECONDS, "a model to think")
    mortal.kill_server()
    gate.touch()
    mortal.start_server()
    for run in (acting, thinking):
        wait_until(lambda run=run: run.is_over, RUN_SECONDS, "the run to go on to its end")
    assert acting.end == thinking.end == ("finished", "done")
    assert lines_of(acted) == ["one", "two", "three-yes", "four", "five"]
    assert lines_of(thought) == ["one", "two"]
    steps = acting.steps
    assert [
        (step["number"], bool(step["is_complete"]), len(step["results"])) for step in steps
    ] == [*((1, True, 1), (2, True, 1), (3, True, 1), (4, True, 2), (5, True, 1))]
    assert not any(result["is_error"] for step in steps for result in step["results"])
    assert steps[2]["results"][0]["body"]["exit_code"] == 0


def test_a_server_killed_again_and_again_types_nothing_twice(
    mortal: Stack, models: ModelServer, runs: Submitter, tmp_path: Path
) -> None:
    """Three runs over both protocols are interrupted at any step.

    The steps are starts, lines, a hidden prompt, and two calls in one answer.
    """
    files = [tmp_path / f"acted-{number}" for number in range(3)]
    for number, file in enumerate(files):
        models.scripts[f"killed-{number}"] = _typing(file)
    rows = [
        runs.submit(f"{'openai' if number % 2 else 'anthropic'}:killed-{number}")
        for number in range(len(files))
    ]
    for point in (1, 3, 6):
        wait_until(
            lambda point=point: len(rows[0].results) >= point, RUN_SECONDS, "the run to get on"
        )
        mortal.kill_server()
        mortal.start_server()
    for run, file in zip(rows, files, strict=True):
        wait_until(lambda run=run: run.is_over, RUN_SECONDS, "the run to go on to its end")
        assert run.end == ("finished", "done")
        assert lines_of(file) == ["one", "two", "three", "four", "five", "6-typed"]
        steps = run.steps
        assert [
            (bool(step["is_complete"]), len(step["results"]), step["sealed"]) for step in steps
        ] == [(True, 2 if step["number"] == 5 else 1, None) for step in steps]
        assert not any(result["is_error"] for step in steps for result in step["results"])
        assert mortal.database.transcript(run.results[1]["session_id"]).count(b"two") == 1


def _typing(file: Path) -> Script:
    asks = f'while read -p "? " line && [ "$line" != end ]; do echo "$line" >> {file}; done'
    hides = (
        f'read -s -p "Secret: " secret; echo "${{#secret}}-typed" >> {file}; read -p "Last: " last'
    )

    def types(text: str) -> Script:
        return lambda seen: call(
            "send_command_input",
            session_id=seen.value("session_id", 1),
            input_text=text,
            wait_seconds=20,
        )

    return in_turn(
        _appends(file, "one"),
        call("start_interactive_command", command=f"bash -c '{asks}; {hides}'", wait_seconds=20),
        types("two\n"),
        types("three\n"),
        Says("Two at once.", (*_appends(file, "four").calls, *_appends(file, "five").calls)),
        types("end\n"),
        types("secret\n"),
        done("all of it"),
    )
