"""The run without a key: what it does when a call is refused."""

import json
from typing import Any

from agent.llm.conversation import Answer, Conversation, Exchange
from agent.llm.scripted import DEMO, ScriptedClient

OWN, OTHER = "11111111-1111-4111-8111-111111111111", "22222222-2222-4222-8222-222222222222"


async def _after(*bodies: dict[str, Any]) -> Answer:
    """The script's next answer, after its calls had these results."""
    client, exchanges = ScriptedClient(DEMO), list[Exchange]()

    def conversation() -> Conversation:
        return Conversation(instructions="", task="show me", exchanges=exchanges)

    for body in bodies:
        answer = await client.answer(conversation(), (), lambda _word: None)
        exchanges.append(
            Exchange(answer=answer, results=(json.dumps(body, separators=(",", ":")),))
        )
    return await client.answer(conversation(), (), lambda _word: None)


async def test_a_refused_start_ends_it_with_what_to_do_and_types_nowhere() -> None:
    refused = {
        "error": f"project quickstart allows 1 interactive session at a time; active: {OTHER}",
        "code": "SESSION_LIMIT_REACHED",
        "hint": f"Go on with it: send_command_input(session_id='{OTHER}')",
        "session_id": OTHER,
    }
    (call,) = (await _after({"return_code": 0}, refused)).calls
    assert call.name == "finish_task"
    assert call.arguments is not None
    assert call.arguments["success"] is False
    assert call.arguments["summary"].startswith(
        "SESSION_LIMIT_REACHED: project quickstart allows 1 interactive"
    )
    assert "Go on with it" in call.arguments["summary"]


async def test_it_types_into_the_session_it_started_whatever_results_name() -> None:
    looked = {"return_code": 0, "session_id": OTHER, "hint": f'{{"session_id":"{OTHER}"}}'}
    (call,) = (await _after(looked, {"session_id": OWN, "notes": [{"session_id": OTHER}]})).calls
    assert call.name == "send_command_input"
    assert call.arguments is not None
    assert call.arguments["session_id"] == OWN


async def test_a_call_that_a_person_denied_ends_it() -> None:
    (call,) = (
        await _after({"error": "a person denied this call", "code": "DENIED_BY_OPERATOR"})
    ).calls
    assert call.name == "finish_task"


async def test_among_several_hosts_it_takes_one_that_is_online() -> None:
    ambiguous = {
        "error": "this project has several controllers",
        "code": "CONTROLLER_AMBIGUOUS",
        "hint": "Say which one.",
    }
    (asked,) = (await _after(ambiguous)).calls
    assert (asked.name, asked.arguments) == ("list_controllers", {})
    hosts = {"controllers": [{"name": "away", "online": False}, {"name": "here", "online": True}]}
    (looked,) = (await _after(ambiguous, hosts)).calls
    (started,) = (await _after(ambiguous, hosts, {"return_code": 0})).calls
    (typed,) = (await _after(ambiguous, hosts, {"return_code": 0}, {"session_id": OWN})).calls
    assert [call.name for call in (looked, started, typed)] == [
        "execute_command",
        "start_interactive_command",
        "send_command_input",
    ]
    assert [
        call.arguments and call.arguments.get("controller") for call in (looked, started, typed)
    ] == ["here", "here", None]


async def test_it_asks_for_hosts_once() -> None:
    ambiguous = {
        "error": "this project has several controllers",
        "code": "CONTROLLER_AMBIGUOUS",
        "hint": "Say which one.",
    }
    (call,) = (await _after(ambiguous, {"controllers": []}, ambiguous)).calls
    assert call.name == "finish_task"
