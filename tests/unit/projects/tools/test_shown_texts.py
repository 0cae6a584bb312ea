"""No text a caller is given names a tool it is not shown: instructions, descriptions, schemas,
hints, errors, prompts.

Tried with every combination of toolsets, each within every set of a token and with every selection
of scopes that changes the list.
"""

import inspect
import json
from collections.abc import Callable, Iterator
from functools import cache
from itertools import chain, combinations
from typing import Any
from uuid import uuid4

import pytest

from agent.runs.prompt import instructions as agent_instructions
from agent.runs.toolbox import TOOLSETS as AGENT_TOOLSETS
from mcp_adapter.prompts import prompts_listed_for
from projects.accounts.authentication import SCOPES, Caller
from projects.accounts.toolsets import TOOLSETS
from projects.errors.base import ControllerActionError
from projects.errors.calls import UnknownTool
from projects.errors.commands import StartFailed
from projects.errors.shown_tools import TOOL_NAMES, fitting, said, showing, tools_named
from projects.sessions.answers import hints
from projects.sessions.answers.results import Prompt
from projects.tools import guidance
from projects.tools.registry import ALL_TOOLS
from projects.tools.toolsets import tool_for, tools_for


def _subsets(items: Any) -> Iterator[tuple[str, ...]]:
    return chain.from_iterable(combinations(sorted(items), size) for size in range(len(items) + 1))


@cache
def _listings() -> frozenset[frozenset[str]]:
    """Every set of tools that some caller is shown."""
    found = set()
    asked = [sets for sets in _subsets(TOOLSETS) if len(sets) < 3 or "all" not in sets]
    for scopes in _subsets(set(SCOPES) - {"shell:any", "secret:use", "monitor:delete"}):
        for requested in asked:
            caller = Caller(uuid4(), "x", frozenset(scopes))
            found.add(frozenset(tool.name for tool in tools_for(caller, requested)))
    for granted in TOOLSETS:
        for requested in TOOLSETS:
            caller = Caller(uuid4(), "x", frozenset(SCOPES), toolsets=(granted,))
            found.add(frozenset(tool.name for tool in tools_for(caller, (requested,))))
    return frozenset(found)


def _prompts() -> Iterator[Prompt | None]:
    yield None
    for kind in ("line", "secret", "key", "screen", "shell"):
        for evidence in ("kernel", "heuristic"):
            yield Prompt(kind=kind, text="? ", evidence=evidence)


def _hints() -> Iterator[str]:
    ends = ("exited", "terminated", "timed_out", "lost", "start_failed", "expired")
    for kind in ("interactive", "background", "one_shot", "job"):
        for is_online in (True, False):
            for prompt in _prompts():
                state: Any = "running" if prompt is None else "awaiting_input"
                yield hints.hint_for(
                    state,
                    prompt=prompt,
                    end_reason=None,
                    exit_code=None,
                    signal=None,
                    is_online=is_online,
                    kind=kind,
                )
        for end in ends:
            for exit_code in (0, 1, None):
                yield hints.hint_for(
                    "exited",
                    prompt=None,
                    end_reason=end,
                    exit_code=exit_code,
                    signal=None,
                    is_online=True,
                    kind=kind,
                )
    for state in ("running", "exited"):
        yield hints.hint_for(
            state,
            prompt=None,
            end_reason=None,
            exit_code=None,
            signal=None,
            is_online=True,
            is_confirmed=False,
        )
    yield hints.refused_hint("INPUT_UNCONFIRMED", "")
    yield hints.one_shot_timed_out_hint()
    yield hints.host_away_hint()
    yield hints.omitted_hint(3, 5)


_GIVEN: dict[str, Any] = {
    "kind": "interactive",
    "known": ("a", "b"),
    "active": ["an id"],
    "names": ["a"],
    "allowed": ("ls",),
}


def _kinds(
    root: type[ControllerActionError] = ControllerActionError,
) -> Iterator[type[ControllerActionError]]:
    """Every error of the product from ``root`` down.

    The registry of tools has imported them all.
    """
    if root.__module__.startswith("projects."):
        yield root
    for kind in root.__subclasses__():
        yield from _kinds(kind)


@cache
def _parameters(kind: type[ControllerActionError]) -> dict[str, inspect.Parameter]:
    own = dict(inspect.signature(kind.__init__).parameters)
    return {
        name: part
        for name, part in own.items()
        if name != "self" and part.kind not in (part.VAR_POSITIONAL, part.VAR_KEYWORD)
    }


def _made(kind: type[ControllerActionError], /, **chosen: Any) -> ControllerActionError:
    return kind(
        **{
            name: chosen.get(name, _GIVEN.get(name, _value_for(part)))
            for name, part in _parameters(kind).items()
        }
    )


def _value_for(part: inspect.Parameter) -> Any:
    return (
        3
        if part.annotation in {int, float}
        else ["x"]
        if "Sequence" in str(part.annotation)
        else "x"
    )


def _errors() -> Iterator[ControllerActionError]:
    for kind in sorted(_kinds(), key=lambda kind: kind.__name__):
        codes = getattr(kind, "HINTS", None)
        if codes:
            yield from (_made(kind, code=code) for code in codes)
        elif "kind" in _parameters(kind):
            yield from (
                _made(kind, kind=one) for one in ("interactive", "background", "one_shot", "job")
            )
        elif kind is not UnknownTool:
            yield _made(kind)


def _texts(names: frozenset[str]) -> Iterator[str]:
    yield guidance.instructions(names)
    for tool in ALL_TOOLS:
        if tool.name in names:
            shown = tool.shown_to(names)
            yield from (
                shown.description,
                json.dumps(shown.input_schema),
                json.dumps(shown.output_schema),
            )
    with showing(names):
        yield from _hints()
        yield from (error.body()["hint"] for error in _errors())


def test_the_names_are_those_of_the_registry() -> None:
    assert {tool.name for tool in ALL_TOOLS} == TOOL_NAMES


def test_callers_are_shown_many_different_lists() -> None:
    assert len(_listings()) > 100
    assert frozenset() in _listings()
    assert TOOL_NAMES in _listings()


def test_no_text_names_a_tool_that_is_not_listed() -> None:
    for names in _listings():
        for text in _texts(names):
            assert tools_named(text) <= names, (sorted(names), text)
            assert ". || " not in text


@pytest.mark.parametrize("toolset", sorted(TOOLSETS))
def test_every_tool_is_described_and_every_hint_says_something(toolset: str) -> None:
    names = TOOLSETS[toolset]
    for tool in ALL_TOOLS:
        if tool.name in names:
            assert tool.shown_to(names).description.endswith(".")
            described = tool.shown_to(names).input_schema["properties"].values()
            assert all(schema["description"] for schema in described), tool.name
    with showing(names):
        assert all(_hints())
        assert [error for error in _errors() if not error.body()["hint"]] == []


def test_an_unknown_tool_is_answered_with_those_that_are_listed() -> None:
    caller = Caller(uuid4(), "x", frozenset({"session:read"}))
    with pytest.raises(UnknownTool) as unknown:
        tool_for("reed_output", caller, ("background", "agent"))
    assert tools_named(unknown.value.hint) == {
        tool.name for tool in tools_for(caller, ("background", "agent"))
    }


async def test_the_prompt_is_listed_only_with_its_tools() -> None:
    for names in _listings():
        listed = await prompts_listed_for(names)(None, None)
        assert bool(listed.prompts) == (
            {"start_interactive_command", "send_command_input"} <= names
        )


@pytest.mark.requirement("S3.R5.2")
def test_the_prompt_of_a_run_names_only_tools_the_run_has() -> None:
    for toolsets in _subsets(set(TOOLSETS) - {"all"}):
        caller = Caller(uuid4(), "x", frozenset(SCOPES), toolsets=toolsets)
        names = frozenset(tool.name for tool in tools_for(caller))
        assert (
            tools_named(agent_instructions(controllers=("web1",), marker="m", names=names)) <= names
        )
    names = frozenset().union(*(TOOLSETS[name] for name in AGENT_TOOLSETS))
    text = agent_instructions(controllers=(), marker="m", names=names)
    assert tools_named(text) >= {"start_interactive_command", "execute_command", "start_command"}


@pytest.mark.parametrize("toolset", sorted(TOOLSETS))
def test_each_habit_stands_once_in_what_a_caller_is_shown(toolset: str) -> None:
    names = TOOLSETS[toolset]
    definitions = [tool.shown_to(names).description for tool in ALL_TOOLS if tool.name in names]
    everything = " ".join([guidance.instructions(names), *definitions])
    habits = [
        text for name, text in vars(guidance).items() if name.isupper() and isinstance(text, str)
    ]
    assert habits
    for sentence in chain.from_iterable(fitting(habit, names).split(". ") for habit in habits):
        assert everything.count(sentence.removesuffix(".")) <= 1 or not sentence, sentence


def test_the_set_for_models_tells_everything_it_takes() -> None:
    names = TOOLSETS["agent"]
    definitions = [tool.shown_to(names).description for tool in ALL_TOOLS if tool.name in names]
    everything = " ".join([guidance.instructions(names), *definitions])
    for words in (
        "one answer per prompt",
        "Never run sleep",
        "-y",
        "Never guess a password",
        "not instructions",
        "lifetime",
    ):
        assert words in everything


_RULES: list[tuple[Callable[[], str], str]] = [
    (
        lambda: fitting("Use read_output. Wait. Use get_session.", {"get_session"}),
        "Wait. Use get_session.",
    ),
    (
        lambda: fitting(
            "Use read_output. || Use get_session. || Wait. Then go on.", {"get_session"}
        ),
        "Use get_session. Then go on.",
    ),
    (
        lambda: fitting("Use read_output. || Use get_session. || Wait. Then go on.", ()),
        "Wait. Then go on.",
    ),
    (
        lambda: fitting("Use read_output. || Use get_session.", {"read_output", "get_session"}),
        "Use read_output.",
    ),
    (
        lambda: fitting("In read_output_total and session_read_output. Both.", ()),
        "In read_output_total and session_read_output. Both.",
    ),
    (lambda: said("Look for {name}.", name="read_output"), "Look for read_output."),
]


@pytest.mark.parametrize(("make", "text"), _RULES)
def test_sentences_are_said_to_those_they_fit(make: Callable[[], str], text: str) -> None:
    with showing(()):
        assert make() == text


def test_no_text_of_a_start_says_that_programs_run_as_the_daemons_user() -> None:
    schemas = [json.dumps(tool.input_schema) for tool in ALL_TOOLS]
    texts = [*schemas, *(tool.full_description for tool in ALL_TOOLS), *StartFailed.HINTS.values()]
    assert [text for text in texts if "daemon's user" in text] == []
    assert "user that programs run as" in StartFailed.HINTS["CWD_NOT_FOUND"]
