"""Models behind endpoints with OpenAI's or Anthropic's wire protocol, by way of pydantic-ai.

The library is an optional extra. The runner retries, so its clients make one attempt only.
"""

import asyncio
import json
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

from agent.conf import conf
from agent.llm.conversation import Answer, Call, Conversation, ModelNotUsable, OfferedTool, OnText
from agent.llm.errors import WHERE, WIRES, translated

if TYPE_CHECKING:
    from pydantic_ai.messages import ModelMessage, ModelResponse
    from pydantic_ai.models import Model

_CUTS: Final = {"length": "the limit of its length", "content_filter": "a filter of contents"}
_MOST_LEVELS: Final = 64
_INSTALL: Final = (
    f"Install them {WHERE.split(':')[0]}: pip install --require-hashes -r requirements-agent.txt"
)


class EndpointClient:
    """A model by its name, such as ``openai:gpt-5`` or ``anthropic:claude-sonnet-4-5``.

    Raises ModelNotUsable.
    """

    def __init__(self, name: str) -> None:
        kind, _, model = name.partition(":")
        if kind not in WIRES or not model:
            raise ModelNotUsable(
                f"there is no model {name[:64]!r}",
                hint="Name one as openai:NAME, anthropic:NAME or scripted:demo.",
            )
        self._wire = WIRES[kind]
        try:
            self._model: Model = _openai(model) if kind == "openai" else _anthropic(model)
        except ImportError:
            raise ModelNotUsable(
                "the libraries of models are not installed", hint=_INSTALL
            ) from None

    async def answer(
        self, conversation: Conversation, tools: Sequence[OfferedTool], on_text: OnText
    ) -> Answer:
        """Streams one answer. Every event has to come within the allowed silence."""
        from pydantic_ai.direct import model_request_stream
        from pydantic_ai.models import ModelRequestParameters
        from pydantic_ai.tools import ToolDefinition

        offered = [
            ToolDefinition(
                name=tool.name,
                description=tool.description,
                parameters_json_schema=dict(tool.schema),
            )
            for tool in tools
        ]
        parameters = ModelRequestParameters(function_tools=offered)
        silence = conf.model_silence_seconds
        with translated(self._wire):
            async with asyncio.timeout(silence) as deadline:
                async with model_request_stream(
                    self._model,
                    _messages(conversation),
                    model_settings={"timeout": silence},
                    model_request_parameters=parameters,
                ) as stream:
                    async for event in stream:
                        deadline.reschedule(asyncio.get_running_loop().time() + silence)
                        if piece := _text_of(event):
                            on_text(piece)
                    return _answer(stream.get())

    async def close(self) -> None:
        """Closes the connections to the endpoint."""
        client: Any = getattr(self._model, "client", None)
        if client is not None:
            await client.close()


def _key(kind: str, key: str, url: str) -> str:
    if not (key or url):
        raise ModelNotUsable("there is no API key", hint=f"Set {WIRES[kind].key_variable} {WHERE}.")
    # A self-hosted endpoint may need no key, and the libraries refuse an empty one.
    return key or "none"


def _openai(model: str) -> "Model":
    from openai import AsyncOpenAI
    from pydantic_ai.models.openai import OpenAIChatModel
    from pydantic_ai.providers.openai import OpenAIProvider

    client = AsyncOpenAI(
        api_key=_key("openai", conf.openai_key, conf.openai_url),
        base_url=conf.openai_url or None,
        max_retries=0,
    )
    return OpenAIChatModel(model, provider=OpenAIProvider(openai_client=client))


def _anthropic(model: str) -> "Model":
    from anthropic import AsyncAnthropic
    from pydantic_ai.models.anthropic import AnthropicModel
    from pydantic_ai.providers.anthropic import AnthropicProvider

    client = AsyncAnthropic(
        api_key=_key("anthropic", conf.anthropic_key, conf.anthropic_url),
        base_url=conf.anthropic_url or None,
        max_retries=0,
    )
    return AnthropicModel(
        model, provider=AnthropicProvider(anthropic_client=client), settings={"max_tokens": 8192}
    )


def _messages(conversation: Conversation) -> "list[ModelMessage]":
    from pydantic_ai.messages import ModelRequest, ToolReturnPart, UserPromptPart

    told: list[Any] = [UserPromptPart(conversation.task)]
    messages: list[ModelMessage] = []
    for exchange in conversation.exchanges:
        told += [UserPromptPart(text) for text in exchange.said_before]
        messages += [
            ModelRequest(told, instructions=conversation.instructions),
            _response(exchange.answer),
        ]
        told = [
            ToolReturnPart(tool_name=call.name, content=result, tool_call_id=call.id)
            for call, result in zip(exchange.answer.calls, exchange.results, strict=True)
        ]
    told += [UserPromptPart(text) for text in conversation.said_last]
    return [
        *messages,
        ModelRequest(told or [UserPromptPart("Go on.")], instructions=conversation.instructions),
    ]


def _response(answer: Answer) -> "ModelResponse":
    from pydantic_ai.messages import ModelMessagesTypeAdapter, ModelResponse, TextPart, ToolCallPart

    if answer.native is not None:
        response = ModelMessagesTypeAdapter.validate_python(answer.native)[0]
        if isinstance(response, ModelResponse):
            return response
    calls = [
        ToolCallPart(tool_name=call.name, args=dict(call.arguments or {}), tool_call_id=call.id)
        for call in answer.calls
    ]
    text = answer.text or ("" if calls else "(nothing)")
    return ModelResponse(parts=[*([TextPart(text)] if text else []), *calls])


def _answer(response: "ModelResponse") -> Answer:
    from pydantic_ai.messages import ModelMessagesTypeAdapter, TextPart, ToolCallPart

    calls = [part for part in response.parts if isinstance(part, ToolCallPart)]
    # Only reasoning has to be sent back as it came. Text and calls are rebuilt from the row, which
    # may leave parts of them out.
    has_more = any(not isinstance(part, (TextPart, ToolCallPart)) for part in response.parts)
    return Answer(
        text="".join(part.content for part in response.parts if isinstance(part, TextPart)),
        calls=tuple(Call(part.tool_call_id, part.tool_name, _arguments(part)) for part in calls),
        input_tokens=response.usage.input_tokens,
        output_tokens=response.usage.output_tokens,
        cost_cents=_cost_cents(response),
        cut_by=_CUTS.get(response.finish_reason or "", ""),
        native=ModelMessagesTypeAdapter.dump_python([response], mode="json") if has_more else None,
    )


def _arguments(part: Any) -> dict[str, Any] | None:
    try:
        given = part.args if isinstance(part.args, dict) else json.loads(part.args or "{}")
    except (ValueError, RecursionError):
        return None
    return given if isinstance(given, dict) and _is_shallow(given) else None


def _is_shallow(value: Any) -> bool:
    """False for what is nested so deeply that no reader of JSON has to take it."""
    level = [value]
    for _depth in range(_MOST_LEVELS):
        parts = [one.values() if isinstance(one, dict) else one for one in level]
        level = [one for part in parts for one in part if isinstance(one, (dict, list))]
        if not level:
            return True
    return False


def _cost_cents(response: "ModelResponse") -> float:
    """The price of an answer; 0 for a model without published prices."""
    try:
        return float(response.cost().total_price) * 100
    except (AssertionError, LookupError, ValueError):
        return 0.0


def _text_of(event: Any) -> str:
    from pydantic_ai.messages import PartDeltaEvent, PartStartEvent, TextPart, TextPartDelta

    if isinstance(event, PartStartEvent) and isinstance(event.part, TextPart):
        return event.part.content
    if isinstance(event, PartDeltaEvent) and isinstance(event.delta, TextPartDelta):
        return event.delta.content_delta or ""
    return ""
