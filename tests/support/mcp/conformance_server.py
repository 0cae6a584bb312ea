"""The example server of the protocol's conformance suite, mounted by the product's own code.

``application`` is what an ASGI server runs. Everything around the tools is the product's: Host and
Origin, the token, the session manager, the stream that opens early. The suite calls the tools,
resources and prompts by their names and addresses (``test_…``, ``test://…``), and its scenarios say
what each must answer.
"""

import asyncio
import json
import os
from typing import Any, Final, TypeAlias

import django
from mcp.server.mcpserver import Context, MCPServer, RequestStateSecurity
from mcp.server.mcpserver.prompts.base import UserMessage
from mcp.shared.exceptions import MCPError
from mcp_types import (
    MISSING_REQUIRED_CLIENT_CAPABILITY,
    AudioContent,
    Completion,
    CreateMessageRequest,
    CreateMessageRequestParams,
    CreateMessageResult,
    ElicitRequest,
    ElicitRequestFormParams,
    ElicitResult,
    EmbeddedResource,
    ImageContent,
    InputRequiredResult,
    ListRootsRequest,
    ListRootsResult,
    SamplingMessage,
    TextContent,
    TextResourceContents,
)

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings.base")
django.setup()

from mcp_adapter.asgi import serve  # noqa: E402 - after the apps are loaded

Asking: TypeAlias = str | InputRequiredResult

_PIXEL: Final = (
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8"
    "z8DwHwAFBQIAX8jx0gAAAABJRU5ErkJggg=="
)
_SILENCE: Final = "UklGRiYAAABXQVZFZm10IBAAAAABAAEAQB8AAAB9AAACABAAZGF0YQIAAAA="

example: Final = MCPServer(
    "conformance-example",
    version="1",
    request_state_security=RequestStateSecurity.ephemeral(),
    log_level="WARNING",
)


async def application(scope: dict[str, Any], receive: Any, send: Any) -> None:
    """Serve ``/mcp`` with the example's tools."""
    if scope["type"] != "http":
        raise ValueError(f"unsupported ASGI scope {scope['type']!r}")
    await serve(scope, receive, send, make_server=lambda _names: example._lowlevel_server)


# The suite wants a description of each tool, resource and prompt: their docstrings are served.
# ---- tools that answer with each kind of content -------------------------------------------------


@example.tool()
def test_simple_text() -> str:
    """Answers with a line of text."""
    return "This is a simple text response for testing."


@example.tool()
def test_image_content() -> list[ImageContent]:
    """Answers with a small PNG image."""
    return [ImageContent(type="image", data=_PIXEL, mime_type="image/png")]


@example.tool()
def test_audio_content() -> list[AudioContent]:
    """Answers with a short WAV sound."""
    return [AudioContent(type="audio", data=_SILENCE, mime_type="audio/wav")]


def _embedded(uri: str, text: str, mime_type: str = "text/plain") -> EmbeddedResource:
    return EmbeddedResource(
        type="resource", resource=TextResourceContents(uri=uri, mime_type=mime_type, text=text)
    )


@example.tool()
def test_embedded_resource() -> list[EmbeddedResource]:
    """Answers with an embedded text resource."""
    return [_embedded("test://embedded-resource", "This is an embedded resource content.")]


@example.tool()
def test_multiple_content_types() -> list[TextContent | ImageContent | EmbeddedResource]:
    """Answers with text, an image and a resource."""
    return [
        TextContent(type="text", text="Multiple content types test:"),
        ImageContent(type="image", data=_PIXEL, mime_type="image/png"),
        _embedded(
            "test://mixed-content-resource", '{"test": "data", "value": 123}', "application/json"
        ),
    ]


@example.tool()
def test_error_handling() -> str:
    """Fails with an error on every call."""
    raise RuntimeError("This tool intentionally returns an error for testing")


@example.tool()
async def test_tool_with_progress(ctx: Context[Any, Any]) -> str:
    """Reports its progress in three steps."""
    for done in (0, 50, 100):
        await ctx.report_progress(done, 100, f"Completed step {done} of 100")
        await asyncio.sleep(0.02)
    return str((ctx.request_context.meta or {}).get("progress_token"))


@example.tool()
def test_missing_capability(ctx: Context[Any, Any]) -> str:
    """Needs a client that supports sampling."""
    if (declared := ctx.client_capabilities) is None or declared.sampling is None:
        needed = {"requiredCapabilities": {"sampling": {}}}
        raise MCPError(
            MISSING_REQUIRED_CLIENT_CAPABILITY,
            "This tool requires the client 'sampling' capability",
            needed,
        )
    return "The client may be asked."


@example.tool()
async def test_logging_tool(ctx: Context[Any, Any]) -> str:
    """Sends a log message to a client that asked for it."""
    await ctx.session.send_log_message("info", "at work", related_request_id=ctx.request_id)
    return "Logged."


@example.tool()
async def test_trigger_tool_change(ctx: Context[Any, Any]) -> str:
    """Announces to its listeners that the list of tools changed."""
    await ctx.notify_tools_changed()
    return "Announced."


@example.tool()
async def test_trigger_prompt_change(ctx: Context[Any, Any]) -> str:
    """Announces to its listeners that the list of prompts changed."""
    await ctx.notify_prompts_changed()
    return "Announced."


# ---- tools that ask their client for more, and go on with its answers ----------------------------


def _form(message: str, field: str, kind: str = "string") -> ElicitRequest:
    schema = {"type": "object", "properties": {field: {"type": kind}}, "required": [field]}
    return ElicitRequest(params=ElicitRequestFormParams(message=message, requested_schema=schema))


def _sample(text: str) -> CreateMessageRequest:
    message = SamplingMessage(role="user", content=TextContent(type="text", text=text))
    return CreateMessageRequest(
        params=CreateMessageRequestParams(messages=[message], max_tokens=100)
    )


def _answered(ctx: Context[Any, Any], key: str, field: str) -> Any:
    """The client's answer to the form ``key``; None before the answer."""
    answer = (ctx.input_responses or {}).get(key)
    return (answer.content or {}).get(field, "?") if isinstance(answer, ElicitResult) else None


@example.tool()
def test_input_required_result_elicitation(ctx: Context[Any, Any]) -> Asking:
    """Asks the client for a form."""
    if (name := _answered(ctx, "user_name", "name")) is None:
        return InputRequiredResult(
            input_requests={"user_name": _form("What is your name?", "name")}
        )
    return f"Hello, {name}!"


@example.tool()
async def test_streaming_elicitation(ctx: Context[Any, Any]) -> Asking:
    """Asks for a form on a stream that has reported progress before."""
    await ctx.report_progress(0, 1, "about to ask")
    return test_input_required_result_elicitation(ctx)


@example.tool()
def test_input_required_result_sampling(ctx: Context[Any, Any]) -> Asking:
    """Asks the client for a sample."""
    answer = (ctx.input_responses or {}).get("capital_question")
    if not isinstance(answer, CreateMessageResult):
        return InputRequiredResult(
            input_requests={"capital_question": _sample("What is the capital of France?")}
        )
    return f"Model said: {getattr(answer.content, 'text', '?')}"


@example.tool()
def test_input_required_result_list_roots(ctx: Context[Any, Any]) -> Asking:
    """Asks the client for its roots."""
    answer = (ctx.input_responses or {}).get("client_roots")
    if not isinstance(answer, ListRootsResult):
        return InputRequiredResult(input_requests={"client_roots": ListRootsRequest()})
    return f"Client exposed {len(answer.roots)} root(s)."


@example.tool()
def test_input_required_result_request_state(ctx: Context[Any, Any]) -> Asking:
    """Asks the client, and recognises its own state in the answer."""
    if _answered(ctx, "confirm", "ok") is not None and ctx.request_state == "nonce":
        return "state-ok: confirmation received"
    return InputRequiredResult(
        input_requests={"confirm": _form("Please confirm", "ok", "boolean")}, request_state="nonce"
    )


@example.tool()
def test_input_required_result_tampered_state(ctx: Context[Any, Any]) -> Asking:
    """Asks the client, and must never be given a state that was changed."""
    if ctx.request_state is None:
        return InputRequiredResult(
            input_requests={"confirm": _form("Please confirm", "ok", "boolean")},
            request_state="round-1",
        )
    return f"state-ok: {ctx.request_state}"


@example.tool()
def test_input_required_result_multiple_inputs(ctx: Context[Any, Any]) -> Asking:
    """Asks the client for three things at once."""
    requests = {
        "user_name": _form("What is your name?", "name"),
        "greeting": _sample("A greeting"),
        "client_roots": ListRootsRequest(),
    }
    if requests.keys() <= (ctx.input_responses or {}).keys():
        return "All inputs received."
    return InputRequiredResult(input_requests=requests, request_state="multiple-inputs")


@example.tool()
def test_input_required_result_multi_round(ctx: Context[Any, Any]) -> Asking:
    """Asks the client for two forms, one after the other."""
    state = json.loads(ctx.request_state or "{}")
    if state.get("round") == 2 and (color := _answered(ctx, "step2", "color")) is not None:
        return f"{state['name']} likes {color}."
    if state.get("round") == 1 and (name := _answered(ctx, "step1", "name")) is not None:
        step, form = (
            {"round": 2, "name": name},
            {"step2": _form("Step 2: What is your favorite color?", "color")},
        )
    else:
        step, form = {"round": 1}, {"step1": _form("Step 1: What is your name?", "name")}
    return InputRequiredResult(input_requests=form, request_state=json.dumps(step))


@example.tool()
def test_input_required_result_capabilities(ctx: Context[Any, Any]) -> InputRequiredResult:
    """Asks only for what the client has declared."""
    declared = ctx.client_capabilities
    possible = {
        "sampling": _sample("Say hello"),
        "elicitation": _form("What is your name?", "name"),
    }
    requests = {
        key: request
        for key, request in possible.items()
        if declared is None or getattr(declared, key) is not None
    }
    return InputRequiredResult(input_requests=requests, request_state="capability-gated")


# ---- resources, prompts, completion --------------------------------------------------------------


@example.resource("test://static-text")
def static_text() -> str:
    """A resource whose content is text."""
    return "This is the content of the static text resource."


@example.resource("test://static-binary", mime_type="image/png")
def static_binary() -> bytes:
    """A resource whose content is bytes."""
    return _PIXEL.encode()


@example.resource("test://template/{id}/data")
def template(id: str) -> str:  # noqa: A002 - the name is in the address
    """A resource with a parameter in its address."""
    return json.dumps({"id": id, "templateTest": True, "data": f"Data for ID: {id}"})


def _said(*contents: TextContent | ImageContent | EmbeddedResource) -> list[UserMessage]:
    return [UserMessage(role="user", content=content) for content in contents]


@example.prompt()
def test_simple_prompt() -> list[UserMessage]:
    """A prompt with one text message."""
    return _said(TextContent(type="text", text="This is a simple prompt for testing."))


@example.prompt()
def test_prompt_with_arguments(arg1: str, arg2: str) -> list[UserMessage]:
    """A prompt that takes two arguments."""
    return _said(
        TextContent(type="text", text=f"Prompt with arguments: arg1='{arg1}', arg2='{arg2}'")
    )


@example.prompt()
def test_prompt_with_embedded_resource(resourceUri: str) -> list[UserMessage]:  # noqa: N803 - the suite's name
    """A prompt with an embedded resource."""
    return _said(
        _embedded(resourceUri, "Embedded resource content for testing."),
        TextContent(type="text", text="Process it."),
    )


@example.prompt()
def test_prompt_with_image() -> list[UserMessage]:
    """A prompt with an image in it."""
    return _said(
        ImageContent(type="image", data=_PIXEL, mime_type="image/png"),
        TextContent(type="text", text="Look at it."),
    )


@example.prompt()
def test_input_required_result_prompt(
    ctx: Context[Any, Any],
) -> list[UserMessage] | InputRequiredResult:
    """A prompt that asks the client for a form first."""
    if (context := _answered(ctx, "user_context", "context")) is None:
        return InputRequiredResult(
            input_requests={"user_context": _form("What context should the prompt use?", "context")}
        )
    return _said(TextContent(type="text", text=f"Use the following context: {context}"))


@example.completion()
async def complete(*_: Any) -> Completion:
    return Completion(values=[], total=0, has_more=False)
