"""The part of a run that its model is shown.

The model is shown everything that fits. After that old output shrinks first, then old steps are
left out. Sizes are estimated from characters, on the safe side. Pure.
"""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Final
from uuid import UUID

from django.utils.crypto import salted_hmac

from agent.llm.conversation import Answer, Conversation, Exchange

CHARS_PER_TOKEN: Final = 3.0
KEPT_WHOLE: Final = 4
"""The newest steps. They shrink only if nothing else helps."""
SHRUNK_CHARS: Final = 400
_PRINTED: Final = ("output", "stdout", "stderr", "new_content")
_SHARE: Final = 0.8
"""The part of the window for the conversation. The rest is for the answer, the tools and the error
of the estimate.
"""


class DoesNotFit(Exception):
    """The task and the newest step alone are larger than the window."""


def marker_of(run_id: UUID) -> str:
    """The text that fences output in this run. No program can know it in advance."""
    return salted_hmac("holdline.agent.fence", str(run_id), algorithm="sha256").hexdigest()[:12]


def framed(body: Mapping[str, Any], *, marker: str, most_chars: int) -> str:
    """A result as the model reads it: facts as JSON, and the output of programs as fenced data."""
    facts = {
        name: value
        for name, value in body.items()
        if name not in _PRINTED and value not in (None, [], "")
    }
    parts = [json.dumps(facts, ensure_ascii=False, separators=(",", ":"), default=str)]
    for name in _PRINTED:
        if text := body.get(name):
            label = "" if name == "output" else f" {name}"
            clipped = shortened(str(text), most_chars).replace(marker, "").removesuffix("\n")
            parts.append(f"<output {marker}>{label}\n{clipped}\n</output {marker}>")
    return "\n".join(parts)


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
    exchanges = list(conversation.exchanges)
    if _size(conversation, exchanges) <= room:
        return conversation
    for index in range(max(0, len(exchanges) - KEPT_WHOLE)):
        exchanges[index] = _shrunk(exchanges[index])
        if _size(conversation, exchanges) <= room:
            return replace(conversation, exchanges=exchanges)
    while exchanges:
        # Nothing older is left to drop: the newest steps shrink, too.
        exchanges = (
            exchanges[1:] if len(exchanges) > KEPT_WHOLE else list(map(_shrunk, exchanges[1:]))
        )
        if not exchanges:
            break
        dropped = len(conversation.exchanges) - len(exchanges)
        told = (
            f"(Your first {dropped} steps are left out because they are too long. They were: "
            f"{_summary(conversation.exchanges[:dropped])})"
        )
        shown = [
            replace(exchanges[0], said_before=(told, *exchanges[0].said_before)),
            *exchanges[1:],
        ]
        if _size(conversation, shown) <= room:
            return replace(conversation, exchanges=shown)
    raise DoesNotFit


def _shrunk(exchange: Exchange) -> Exchange:
    return replace(
        exchange, results=tuple(shortened(result, SHRUNK_CHARS) for result in exchange.results)
    )


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
