"""A run's lines bring no escape sequence of a model to a terminal."""

import io
import json
from typing import Any

import pytest

from agent.models import AgentRun
from agent.views.console import Console, JsonLines
from agent.views.rendering import Line, call_line, listed_line, used_line
from projects.models import Project

_ODD = "ls\x1b]0;owned\x07\u202e"


def test_an_invented_tool_is_shown_with_its_odd_characters_spelled_out() -> None:
    stream = io.StringIO()
    Console(stream, is_coloured=False).write(call_line({"name": _ODD, "arguments": {_ODD: _ODD}}))
    assert stream.getvalue().startswith(r"> ls\x1b]0;owned\x07\u202e ")
    assert stream.getvalue().rstrip("\n").isprintable()


def test_a_listed_run_has_no_odd_characters() -> None:
    run = AgentRun(project=Project(name=_ODD), model=_ODD, task=_ODD, state=AgentRun.State.QUEUED)
    assert listed_line(run, steps=0).isprintable()


@pytest.mark.parametrize(
    ("arguments", "shown"),
    [
        ({"command": "ls -l", "cwd": "/srv"}, '> x ls -l {"cwd": "/srv"}'),
        ({"session_id": "s", "input_text": "y\n", "wait_seconds": 3}, r'> x "y\n"'),
        ({"sessionId": "s", "keys": ["ctrl-c", "up"]}, "> x ctrl-c+up"),
        ({"keys": "up"}, "> x up"),
        ({"secret": "deploy"}, "> x (secret deploy)"),
        (None, "> x"),
    ],
)
def test_a_call_is_shown_by_what_it_does(arguments: dict[str, Any] | None, shown: str) -> None:
    stream = io.StringIO()
    line = call_line({"name": "x", "arguments": arguments})
    Console(stream, is_coloured=False).write(line)
    assert stream.getvalue() == f"{shown}\n"


def test_programs_get_each_line_as_json() -> None:
    stream = io.StringIO()
    lines = JsonLines(stream)
    lines.write(Line("text", "so"))
    lines.write(Line("text", " far\n"), goes_on=True)
    assert [json.loads(line) for line in stream.getvalue().splitlines()] == [
        {"kind": "text", "text": "so"},
        {"kind": "text", "text": " far\n", "goes_on": True},
    ]


def test_a_text_goes_on_in_its_line_and_ends_before_the_next_one() -> None:
    stream = io.StringIO()
    console = Console(stream, is_coloured=False)
    console.write(Line("text", "so"))
    console.write(Line("text", " far"), goes_on=True)
    console.write(Line("state", "running"))
    console.write(Line("text", "done\n"))
    console.write(Line("text", "bye"))
    console.close()
    console.close()
    written = [line.strip("-> ") for line in stream.getvalue().split("\n")]
    assert written == ["so far", "running", "done", "bye", ""]


@pytest.mark.parametrize(
    ("steps", "used"),
    [(0, "0 steps, 8 tokens, 1.25 USD, 3 s"), (1, "1 step, 8 tokens, 1.25 USD, 3 s")],
)
def test_what_a_run_used_is_said_in_units(steps: int, used: str) -> None:
    run = AgentRun(input_tokens=3, output_tokens=5, cost_cents=125.0, worked_seconds=2.6)
    assert used_line(run, steps=steps) == used
