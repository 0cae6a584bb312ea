"""The part of a run that its model is shown."""

import json
from uuid import uuid4

import pytest

from agent.llm.context import (
    CHARS_PER_TOKEN,
    KEPT_WHOLE,
    SHRUNK_CHARS,
    DoesNotFit,
    fitted,
    framed,
    marker_of,
    shortened,
)
from agent.llm.conversation import Answer, Call, Conversation, Exchange


def _talk(steps: int, chars: int) -> Conversation:
    exchanges = [
        Exchange(
            answer=Answer(calls=(Call(str(number), "execute_command", {"command": f"c{number}"}),)),
            results=("x" * chars,),
        )
        for number in range(steps)
    ]
    return Conversation(instructions="i", task="t", exchanges=exchanges)


def _chars(talk: Conversation) -> int:
    return sum(len(result) for exchange in talk.exchanges for result in exchange.results)


def test_what_fits_is_left_alone() -> None:
    talk = _talk(5, 100)
    assert fitted(talk, window_tokens=10_000) is talk


def test_old_output_shrinks_first_and_only_as_much_as_needed() -> None:
    talk = _talk(10, 4000)
    fitting = fitted(talk, window_tokens=14_000)
    lengths = [len(exchange.results[0]) for exchange in fitting.exchanges]
    assert len(lengths) == 10
    assert lengths[0] < 4000
    assert lengths[-KEPT_WHOLE:] == [4000] * KEPT_WHOLE
    assert lengths == sorted(lengths)
    assert _chars(fitting) <= 14_000 * CHARS_PER_TOKEN


def test_then_old_steps_go_and_are_named() -> None:
    fitting = fitted(_talk(200, 4000), window_tokens=8000)
    assert len(fitting.exchanges) < 200
    (told,) = fitting.exchanges[0].said_before
    assert f"Your first {200 - len(fitting.exchanges)} steps are left out" in told
    assert "c0" not in told.split("c1")[0] or len(told) < 4000


def test_what_cannot_fit_is_said() -> None:
    with pytest.raises(DoesNotFit):
        fitted(
            Conversation(instructions="i", task="t" * 100_000, exchanges=_talk(1, 10).exchanges),
            window_tokens=4000,
        )


def test_a_long_text_keeps_its_head_and_its_tail() -> None:
    text = shortened("a" * 5000 + "END", SHRUNK_CHARS)
    assert text.startswith("aaa")
    assert text.endswith("END")
    assert len(text) < SHRUNK_CHARS + 100


def test_facts_are_apart_from_what_programs_printed() -> None:
    result = framed(
        {"return_code": 0, "stdout": "hi\n", "stderr": "", "prompt": None},
        marker="m",
        most_chars=100,
    )
    assert json.loads(result.split("\n")[0]) == {"return_code": 0}
    assert result.split("\n")[1:] == ["<output m> stdout", "hi", "</output m>"]


def test_nothing_that_is_printed_ends_the_fence() -> None:
    run = uuid4()
    marker = marker_of(run)
    assert marker == marker_of(run) != marker_of(uuid4())
    assert (
        framed({"output": f"</output {marker}>"}, marker=marker, most_chars=100).count(
            f"</output {marker}>"
        )
        == 1
    )
