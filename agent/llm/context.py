"""The part of a run that its model is shown.

The model is shown everything that fits. After that old output shrinks first, then old steps are
left out. Sizes are estimated from characters, on the safe side. Pure.
"""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final
from uuid import UUID

from django.utils.crypto import salted_hmac

from agent.llm.conversation import Answer, Conversation, Exchange

CHARS_PER_TOKEN: Final = 3.0
KEPT_WHOLE: Final = 4
"""The newest steps. They shrink only if nothing else helps."""
SHRUNK_CHARS: Final = 400
_PRINTED: Final = ("output", "stdout", "stderr", "new_content", "tail", "stderr_tail")
_ASKED: Final = ("text", "choices", "on_enter")
"""The words of a program in its prompt. What else a prompt tells is the server's."""
_SHARE: Final = 0.8
"""The part of the window for the conversation. The rest is for the answer, the tools and the error
of the estimate.
"""


class DoesNotFit(Exception):
    """The task and the newest step alone are larger than the window."""


def marker_of(run_id: UUID) -> str:
    """The text that fences output in this run. No program can know it in advance."""
    return salted_hmac("holdline.agent.fence", str(run_id), algorithm="sha256").hexdigest()[:12]


def framed(
    body: Mapping[str, Any], *, marker: str, most_chars: int, most_facts: int | None = None
) -> str:
    """A result as the model reads it: facts as JSON, and the output of programs as fenced data.

    ``most_chars`` are shown of each output, and ``most_facts`` of the facts; None: all.
    """
    told = {name: value for name, value in body.items() if value not in (None, [], "")}
    printed: dict[str, Any] = {name: told.pop(name) for name in _PRINTED if name in told}
    if isinstance(prompt := told.get("prompt"), Mapping):
        told["prompt"] = {name: prompt[name] for name in prompt if name not in _ASKED}
        if asked := {name: prompt[name] for name in _ASKED if prompt.get(name)}:
            printed["prompt"] = _json(asked)
    if "hits" in told:
        printed["hits"] = _json(told.pop("hits"))
    facts = _json(told)
    parts = [facts if most_facts is None else shortened(facts, most_facts).replace("\n", " ")]
    for name, text in printed.items():
        label = "" if name == "output" else f" {name}"
        # Its place is taken: without it, the text on both sides could become a marker.
        clipped = shortened(str(text), most_chars).replace(marker, "-").removesuffix("\n")
        parts.append(f"<output {marker}>{label}\n{clipped}\n</output {marker}>")
    return "\n".join(parts)


def shrunk(body: Mapping[str, Any], *, marker: str) -> str:
    """A result of an old step: little of its facts, and of each output, which stays fenced."""
    return framed(body, marker=marker, most_chars=SHRUNK_CHARS, most_facts=SHRUNK_CHARS)


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"), default=str)


def shortened(text: str, most_chars: int) -> str:
    """The head and the tail of a long text. The tail is longer: it says how things ended."""
    if len(text) <= most_chars:
        return text
    head = most_chars // 3
    left_out = len(text) - most_chars
    return (
        f"{text[:head]}\n[… {left_out} characters left out …]\n"
        f"{text[len(text) - (most_chars - head) :]}"
    )


def fitted(conversation: Conversation, *, window_tokens: int) -> Conversation:
    """The conversation as it fits into the window. Raises DoesNotFit."""
    room = int(window_tokens * _SHARE * CHARS_PER_TOKEN)
    if _size(conversation, conversation.exchanges) <= room:
        return conversation
    for shown in _shorter_and_shorter(conversation.exchanges):
        named = _naming(conversation.exchanges, shown)
        if _size(conversation, named) <= room:
            return replace(conversation, exchanges=named)
    raise DoesNotFit


def _shorter_and_shorter(exchanges: Sequence[Exchange]) -> Iterator[list[Exchange]]:
    """The newest exchanges, each time with less of them."""
    shown = list(exchanges)
    for index in range(max(0, len(shown) - KEPT_WHOLE)):
        shown[index] = _shrunk(shown[index])
        yield shown
    while len(shown) > KEPT_WHOLE:
        shown = shown[1:]
        yield shown
    # Nothing older is left to drop: the newest steps shrink, too.
    for index in range(len(shown)):
        shown[index] = _shrunk(shown[index])
        yield shown
    while len(shown) > 1:
        shown = shown[1:]
        yield shown
    if shown:
        yield [_least(shown[0])]


def _naming(exchanges: Sequence[Exchange], shown: list[Exchange]) -> list[Exchange]:
    """The exchanges that are shown, and a message about those before them."""
    dropped = len(exchanges) - len(shown)
    if not dropped:
        return shown
    told = (
        f"(Your first {dropped} steps are left out because they are too long. They were: "
        f"{_summary(exchanges[:dropped])})"
    )
    return [replace(shown[0], said_before=(told, *shown[0].said_before)), *shown[1:]]


def _shrunk(exchange: Exchange) -> Exchange:
    return replace(exchange, results=exchange.shorter or exchange.results)


def _least(exchange: Exchange) -> Exchange:
    """An exchange whose answer is shortened, too. Its endpoint's form cannot be."""
    answer = exchange.answer
    calls = tuple(
        replace(call, arguments={name: _cut(value) for name, value in call.arguments.items()})
        if call.arguments
        else call
        for call in answer.calls
    )
    least = replace(answer, text=shortened(answer.text, SHRUNK_CHARS), calls=calls, native=None)
    return replace(exchange, answer=least)


def _cut(value: Any) -> Any:
    return shortened(value, SHRUNK_CHARS) if isinstance(value, str) else value


def _summary(exchanges: Sequence[Exchange]) -> str:
    """The calls of steps that are left out, in a few words each; of many calls, the newest."""
    calls = [call for exchange in exchanges for call in exchange.answer.calls]
    words = [
        re.sub(r"\s+", " ", str((call.arguments or {}).get("command") or call.name))[:80]
        for call in calls
    ]
    return "; ".join(words[-40:])


def _size(conversation: Conversation, exchanges: Sequence[Exchange]) -> int:
    fixed = (
        len(conversation.instructions)
        + len(conversation.task)
        + sum(map(len, conversation.said_last))
    )
    return fixed + sum(_size_of(exchange) for exchange in exchanges)


def _size_of(exchange: Exchange) -> int:
    said = sum(map(len, exchange.said_before)) + sum(map(len, exchange.results))
    return said + _size_of_answer(exchange.answer)


def _size_of_answer(answer: Answer) -> int:
    native = len(json.dumps(answer.native, default=str)) if answer.native is not None else 0
    return max(
        native,
        len(answer.text)
        + sum(len(json.dumps(dict(call.arguments or {}))) + 60 for call in answer.calls),
    )
