"""The client of an endpoint, over the real wires, where a whole run would only take longer."""

import os
import subprocess
import sys
from typing import Any

import pytest

from agent.llm.conversation import Answer, Call, Conversation, Exchange, ModelNotUsable, ModelSilent
from agent.llm.endpoint import EndpointClient
from tests.support.agents.model_server import Fails, ModelServer, Says, in_turn
from tests.support.stack import PROJECT_ROOT

WIRES = ("openai", "anthropic")
_ASKED = Conversation(instructions="be brief", task="the task")


@pytest.fixture(autouse=True)
def _settings(models: ModelServer, settings: Any) -> None:
    settings.AGENT_OPENAI_URL = models.environment["HOLDLINE_AGENT_OPENAI_URL"]
    settings.AGENT_ANTHROPIC_URL = models.environment["HOLDLINE_AGENT_ANTHROPIC_URL"]
    settings.OPENAI_API_KEY = settings.ANTHROPIC_API_KEY = "key"


async def _answer(name: str, conversation: Conversation = _ASKED) -> tuple[Answer, list[str]]:
    pieces: list[str] = []

    client = EndpointClient(name)
    try:
        return await client.answer(conversation, [], pieces.append), pieces
    finally:
        await client.close()


@pytest.mark.parametrize("wire", WIRES)
async def test_text_comes_in_pieces(models: ModelServer, wire: str) -> None:
    models.scripts[f"{wire}-pieces"] = in_turn(Says("one two three four five"))
    answer, pieces = await _answer(f"{wire}:{wire}-pieces")
    assert (answer.text, "".join(pieces)) == ("one two three four five",) * 2
    assert len(pieces) > 1
    assert (answer.input_tokens, answer.output_tokens) == (100, 10)


@pytest.mark.parametrize("wire", WIRES)
async def test_an_answer_that_was_cut_says_by_what(models: ModelServer, wire: str) -> None:
    models.scripts[f"{wire}-cut"] = in_turn(Says("one", (("look", '{"at": "th'),), is_cut=True))
    answer, _pieces = await _answer(f"{wire}:{wire}-cut")
    assert (answer.text, answer.cut_by) == ("one", "the limit of its length")
    models.scripts[f"{wire}-uncut"] = in_turn(Says("one"))
    assert not (await _answer(f"{wire}:{wire}-uncut"))[0].cut_by


@pytest.mark.parametrize("wire", WIRES)
@pytest.mark.parametrize("depth", [200, 5_000])
async def test_arguments_nested_too_deeply_are_none(
    models: ModelServer, wire: str, depth: int
) -> None:
    nested = f'{{"at": {"[" * depth}{"]" * depth}}}'
    models.scripts[f"{wire}-deep"] = in_turn(Says("one", (("look", nested), ("look", "{}"))))
    answer, _pieces = await _answer(f"{wire}:{wire}-deep")
    assert [call.arguments for call in answer.calls] == [None, {}]


@pytest.mark.parametrize("wire", WIRES)
async def test_a_model_that_sends_nothing_is_silent(
    models: ModelServer, settings: Any, wire: str
) -> None:
    settings.AGENT_MODEL_SILENCE_SECONDS = 0.5
    models.scripts[f"{wire}-silent"] = in_turn(Fails("silence"))
    with pytest.raises(ModelSilent):
        await _answer(f"{wire}:{wire}-silent")


@pytest.mark.parametrize("wire", WIRES)
async def test_what_was_said_is_shown_again_in_order(models: ModelServer, wire: str) -> None:
    models.scripts[f"{wire}-again"] = in_turn(Says("understood"))
    calls = (Call("call-1", "look", {"at": "this"}), Call("call-2", "look", None))
    exchange = Exchange(
        said_before=("a note",),
        answer=Answer(text="I look", calls=calls),
        results=("first", "second"),
    )
    talk = Conversation(
        instructions="be brief",
        task="the task",
        exchanges=[exchange, Exchange(answer=Answer())],
        said_last=("go on",),
    )
    await _answer(f"{wire}:{wire}-again", talk)
    (seen,) = models.requests[f"{wire}-again"]
    assert (seen.turns, seen.results, seen.instructions) == (2, ("first", "second"), "be brief")
    assert [said for said in seen.told if said != "Go on."] == ["the task", "a note", "go on"]


@pytest.mark.parametrize("name", ["nobody:knows", "openai", "openai:"])
def test_a_name_that_says_nothing_is_refused(name: str) -> None:
    with pytest.raises(ModelNotUsable):
        EndpointClient(name)


def test_a_missing_key_is_named(settings: Any) -> None:
    settings.AGENT_OPENAI_URL = settings.OPENAI_API_KEY = ""
    with pytest.raises(ModelNotUsable, match="OPENAI_API_KEY"):
        EndpointClient("openai:any")


def test_a_server_without_runs_does_not_import_the_libraries_of_models() -> None:
    looks = (
        "import config.asgi, sys; sys.exit(bool({'pydantic_ai', 'openai', 'anthropic'} & "
        "set(sys.modules)))"
    )
    environment = {**os.environ, "DJANGO_SETTINGS_MODULE": "config.settings.test"}
    assert (
        subprocess.run(
            [sys.executable, "-c", looks], cwd=PROJECT_ROOT, env=environment, check=False
        ).returncode
        == 0
    )
