"""A run's lines bring no escape sequence of a model to a terminal."""

import io

from agent.models import AgentRun
from agent.views.console import Console
from agent.views.rendering import call_line, listed_line
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
