"""A caller repeats what a refusal asks for, and takes no refusal for what it wanted to read."""

import random
from pathlib import Path

import pytest

from chaos.clients.caller import Caller, GaveUpError
from chaos.history import History, events
from chaos.wire import Endpoint, Reply
from tests.unit.chaos.clients.answers import Answers

_UNREADABLE = Reply("refused", {"code": "RULES_UNREADABLE", "retryable": False})
_FAILED = Reply("refused", {"code": "CONTROLLER_ACTION_FAILED", "retryable": False})
_AWAY = Reply("refused", {"code": "STORAGE_UNAVAILABLE", "retryable": True})
_DONE = Reply("ok", {"success": True})


def _caller(history: History, endpoint: Endpoint) -> Caller:
    return Caller(endpoint, history, "n", random.Random(1))


@pytest.mark.parametrize("key", ["request_id", "requestId"])
async def test_a_refusal_that_wants_a_new_id_gets_one(history: History, key: str) -> None:
    endpoint = Answers(_UNREADABLE, _UNREADABLE, _DONE)
    reply = await _caller(history, endpoint).insist("write_input", **{key: "first"})
    assert reply == _DONE
    assert endpoint.ids(key)[0] == "first"
    assert len(set(endpoint.ids(key))) == 3


async def test_what_may_be_repeated_keeps_its_id(history: History) -> None:
    endpoint = Answers(_AWAY, Reply("unknown", {}), _DONE)
    assert await _caller(history, endpoint).insist("write_input", request_id="first") == _DONE
    assert set(endpoint.ids()) == {"first"}


async def test_an_action_that_is_refused_is_not_repeated(history: History) -> None:
    endpoint = Answers(_FAILED, _DONE)
    assert await _caller(history, endpoint).insist("write_input", request_id="first") == _FAILED


async def test_a_read_that_is_refused_is_repeated(history: History) -> None:
    endpoint = Answers(_FAILED, _AWAY, _FAILED, _DONE)
    assert await _caller(history, endpoint).read("read_session_output") == _DONE


async def test_a_read_that_stays_refused_is_written_down(history: History, tmp_path: Path) -> None:
    with pytest.raises(GaveUpError):
        await _caller(history, Answers(_FAILED)).read("read_session_output")
    unread = [event for event in events(tmp_path) if event["kind"] == "unread"]
    assert [(event["tool"], event["body"]) for event in unread] == [
        ("read_session_output", _FAILED.body)
    ]


_FRESH = "0197f3a2-0000-7000-8000-000000000001"
_FORGOTTEN = Reply(
    "refused", {"code": "REQUEST_NOT_KNOWN", "hint": f"make it with request_id {_FRESH}; other"}
)
_SUSPENDED = Reply("refused", {"code": "UNAUTHENTICATED", "retryable": False})


async def test_a_new_call_that_may_be_forgotten_takes_the_id_of_the_hint(history: History) -> None:
    endpoint = Answers(_SUSPENDED, _FORGOTTEN, _DONE)
    reply = await _caller(history, endpoint).insist("write_input", request_id="first", input="a")
    assert reply == _DONE
    assert endpoint.ids() == ["first", "first", _FRESH]


async def test_an_input_that_may_have_been_typed_is_not_typed_again(history: History) -> None:
    endpoint = Answers(Reply("unknown", {}), _FORGOTTEN, _DONE)
    reply = await _caller(history, endpoint).insist("write_input", request_id="first", input="a")
    assert reply == _FORGOTTEN


async def test_an_end_that_may_have_been_asked_for_is_asked_for_again(history: History) -> None:
    endpoint = Answers(Reply("unknown", {}), _FORGOTTEN, _DONE)
    reply = await _caller(history, endpoint).insist("stop_command", request_id="first")
    assert reply == _DONE
    assert endpoint.ids() == ["first", "first", _FRESH]
