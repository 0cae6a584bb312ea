"""A language model on the loopback whose answers a test writes.

It speaks the real protocols, streaming: OpenAI's Chat Completions at ``/v1/chat/completions``,
Anthropic's Messages at ``/v1/messages``.

The name of the model selects its script. A script answers from the conversation alone, so a run
that was interrupted and asks again gets the same answer.
"""

import json
import threading
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Literal

FRAGMENT_CHARS = 7
PAUSE_SECONDS = 110.0


@dataclass(frozen=True)
class Seen:
    """The contents of one request to the model.

    ``turns`` counts the answers that the model has given. ``results`` are those of its calls, and
    ``told`` the messages of the user, oldest first.
    """

    turns: int
    results: tuple[str, ...]
    told: tuple[str, ...]
    instructions: str
    tools: tuple[str, ...]

    @property
    def last(self) -> str:
        return self.results[-1] if self.results else ""

    def value(self, name: str, result_number: int | None = None) -> str:
        """The newest text value of this name in any result, or in the one with this number."""
        for result in (
            reversed(self.results) if result_number is None else [self.results[result_number]]
        ):
            facts = json.loads(result.split("\n", 1)[0])
            if isinstance(facts.get(name), str):
                return str(facts[name])
        raise AssertionError(f"no result has {name}: {self.results}")


@dataclass(frozen=True)
class Says:
    """An answer: text, and calls as (tool, arguments). Arguments that are text are sent unchanged.

    The test sets ``go_on`` to let the server send the part after the text. ``tokens`` are those
    read and those written. The answer ``is_cut`` at the limit of its length.
    """

    text: str = ""
    calls: tuple[tuple[str, Any], ...] = ()
    go_on: threading.Event | None = None
    tokens: tuple[int, int] = (100, 10)
    is_cut: bool = False


@dataclass(frozen=True)
class Fails:
    """A failure in place of an answer.

    ``how``: an HTTP ``status``; a connection that is ``cut`` in the middle; ``silence`` until the
    server ends, or a ``stall`` after the first words; ``garbage`` or ``html`` that no model sends.
    """

    how: Literal["status", "cut", "silence", "stall", "garbage", "html"]
    status: int = 500
    headers: tuple[tuple[str, str], ...] = ()


Script = Callable[[Seen], Says | Fails]


def call(tool: str, **arguments: Any) -> Says:
    """An answer that makes one call."""
    return Says(f"I call {tool}.", ((tool, arguments),))


def done(summary: str = "done", *, success: bool = True) -> Says:
    """An answer that ends the run."""
    return call("finish_task", success=success, summary=summary)


def in_turn(*answers: Says | Fails | Script) -> Script:
    """A script that gives the answers one after the other, and repeats the last one."""

    def script(seen: Seen) -> Says | Fails:
        answer = answers[min(seen.turns, len(answers) - 1)]
        return answer(seen) if callable(answer) else answer

    return script


@dataclass
class ModelServer:
    """A started server.

    ``scripts`` and ``faults`` are by model. The faults of a model come before its script, one for
    each request.
    """

    port: int
    scripts: dict[str, Script] = field(default_factory=dict)
    faults: dict[str, list[Fails]] = field(default_factory=lambda: defaultdict(list))
    requests: dict[str, list[Seen]] = field(default_factory=lambda: defaultdict(list))
    keys: list[str] = field(default_factory=list)
    is_ending: threading.Event = field(default_factory=threading.Event)

    @property
    def environment(self) -> dict[str, str]:
        """Variables with which a Holdline server finds this server of models."""
        url = f"http://127.0.0.1:{self.port}"
        return {
            "HOLDLINE_AGENT_OPENAI_URL": f"{url}/v1",
            "HOLDLINE_AGENT_ANTHROPIC_URL": url,
            "OPENAI_API_KEY": "openai-key-of-the-test",
            "ANTHROPIC_API_KEY": "anthropic-key-of-the-test",
            "NO_PROXY": "127.0.0.1",
        }

    def answer(self, model: str, seen: Seen) -> Says | Fails:
        """Record a request and return the answer to it."""
        self.requests[model].append(seen)
        if self.faults[model]:
            return self.faults[model].pop(0)
        return self.scripts[model](seen)


@contextmanager
def model_server() -> Iterator[ModelServer]:
    """A server that is stopped after the block."""

    class Bound(_Handler):
        pass

    listener = ThreadingHTTPServer(("127.0.0.1", 0), Bound)
    listener.daemon_threads = True
    server = ModelServer(listener.server_address[1])
    Bound.model = server
    thread = threading.Thread(target=listener.serve_forever, kwargs={"poll_interval": 0.05})
    thread.start()
    try:
        yield server
    finally:
        server.is_ending.set()
        listener.shutdown()
        thread.join()
        listener.server_close()


class _Handler(BaseHTTPRequestHandler):
    model: ModelServer
    protocol_version = "HTTP/1.1"

    def log_message(self, *_args: Any) -> None:
        """Overridden to log nothing: the base class writes to stderr."""

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        is_openai = self.path.startswith("/v1/chat/completions")
        assert is_openai or self.path.startswith("/v1/messages"), self.path
        assert body["stream"] is True
        self.model.keys.append(self.headers["Authorization"] or self.headers["x-api-key"])
        answer = self.model.answer(
            body["model"], _seen_by_openai(body) if is_openai else _seen_by_anthropic(body)
        )
        self.close_connection = True
        stream = partial(_openai_stream if is_openai else _anthropic_stream, body["model"])
        if isinstance(answer, Fails):
            self._fail(answer, stream)
            return
        self._begin_stream()
        for piece in stream(answer):
            if not piece and answer.go_on is not None:
                answer.go_on.wait(PAUSE_SECONDS)
            self.wfile.write(piece.encode())
            self.wfile.flush()

    def _begin_stream(self) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Connection", "close")
        self.end_headers()

    def _fail(self, fault: Fails, stream: Callable[[Says], Iterator[str]]) -> None:
        if fault.how == "status":
            body = json.dumps(
                {"type": "error", "error": {"type": "api_error", "message": "as the test says"}}
            ).encode()
            self.send_response(fault.status)
            for name, value in (
                ("Content-Type", "application/json"),
                ("Content-Length", str(len(body))),
                *fault.headers,
            ):
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(body)
        elif fault.how == "silence":
            self.model.is_ending.wait()
        elif fault.how == "stall":
            self._begin_stream()
            for piece in stream(Says("I think about")):
                self.wfile.write(piece.encode())
                self.wfile.flush()
                if not piece:
                    self.model.is_ending.wait()
                    return
        elif fault.how == "html":
            self.send_response(200)
            self.send_header("Content-Type", "text/html")
            self.end_headers()
            self.wfile.write(b"<!doctype html><title>Welcome</title><p>It works!</p>")
        elif fault.how == "cut":
            self._begin_stream()
            self.wfile.write(b'data: {"id": "cut')
            self.wfile.flush()
        else:
            self._begin_stream()
            self.wfile.write(b"data: this is no JSON\n\ndata: [DONE]\n\n")


def _seen_by_openai(body: dict[str, Any]) -> Seen:
    messages = body["messages"]
    return Seen(
        turns=sum(message["role"] == "assistant" for message in messages),
        results=tuple(
            _text(message["content"]) for message in messages if message["role"] == "tool"
        ),
        told=tuple(_text(message["content"]) for message in messages if message["role"] == "user"),
        instructions="\n".join(
            _text(message["content"])
            for message in messages
            if message["role"] in {"system", "developer"}
        ),
        tools=tuple(tool["function"]["name"] for tool in body.get("tools", ())),
    )


def _seen_by_anthropic(body: dict[str, Any]) -> Seen:
    blocks = [
        block if isinstance(block, dict) else {"type": "text", "text": block}
        for message in body["messages"]
        if message["role"] == "user"
        for block in (
            [message["content"]] if isinstance(message["content"], str) else message["content"]
        )
    ]
    return Seen(
        turns=sum(message["role"] == "assistant" for message in body["messages"]),
        results=tuple(
            _text(block["content"]) for block in blocks if block["type"] == "tool_result"
        ),
        told=tuple(block["text"] for block in blocks if block["type"] == "text"),
        instructions=_text(body.get("system", "")),
        tools=tuple(tool["name"] for tool in body.get("tools", ())),
    )


def _text(content: str | list[dict[str, Any]]) -> str:
    return (
        content if isinstance(content, str) else "".join(block.get("text", "") for block in content)
    )


def _fragments(text: str) -> Sequence[str]:
    return [text[start : start + FRAGMENT_CHARS] for start in range(0, len(text), FRAGMENT_CHARS)]


def _arguments(given: Any) -> str:
    return given if isinstance(given, str) else json.dumps(given)


def _openai_stream(model: str, answer: Says) -> Iterator[str]:
    def chunk(delta: dict[str, Any] | None, **more: Any) -> str:
        choices = (
            []
            if delta is None
            else [{"index": 0, "delta": delta, "finish_reason": more.pop("finish_reason", None)}]
        )
        body = {
            "id": "chatcmpl-1",
            "object": "chat.completion.chunk",
            "created": 1,
            "model": model,
            "choices": choices,
            **more,
        }
        return f"data: {json.dumps(body)}\n\n"

    yield chunk({"role": "assistant", "content": ""})
    for piece in _fragments(answer.text):
        yield chunk({"content": piece})
    yield ""
    for index, (name, given) in enumerate(answer.calls):
        function = {"name": name, "arguments": ""}
        yield chunk(
            {
                "tool_calls": [
                    {
                        "index": index,
                        "id": f"call_{id(given):x}",
                        "type": "function",
                        "function": function,
                    }
                ]
            }
        )
        for piece in _fragments(_arguments(given)):
            yield chunk({"tool_calls": [{"index": index, "function": {"arguments": piece}}]})
    reason = "tool_calls" if answer.calls else "stop"
    yield chunk({}, finish_reason="length" if answer.is_cut else reason)
    yield chunk(
        None,
        usage={
            "prompt_tokens": answer.tokens[0],
            "completion_tokens": answer.tokens[1],
            "total_tokens": sum(answer.tokens),
        },
    )
    yield "data: [DONE]\n\n"


def _anthropic_stream(model: str, answer: Says) -> Iterator[str]:
    def event(kind: str, **body: Any) -> str:
        return f"event: {kind}\ndata: {json.dumps({'type': kind, **body})}\n\n"

    usage = {"input_tokens": answer.tokens[0], "output_tokens": 1}
    message = {"id": "msg_1", "type": "message", "role": "assistant", "content": [], "model": model}
    yield event(
        "message_start",
        message={**message, "stop_reason": None, "stop_sequence": None, "usage": usage},
    )
    index = 0
    if answer.text:
        yield event("content_block_start", index=index, content_block={"type": "text", "text": ""})
        for piece in _fragments(answer.text):
            yield event(
                "content_block_delta", index=index, delta={"type": "text_delta", "text": piece}
            )
        yield event("content_block_stop", index=index)
        index += 1
    yield ""
    for name, given in answer.calls:
        block = {"type": "tool_use", "id": f"toolu_{id(given):x}", "name": name, "input": {}}
        yield event("content_block_start", index=index, content_block=block)
        for piece in _fragments(_arguments(given)):
            yield event(
                "content_block_delta",
                index=index,
                delta={"type": "input_json_delta", "partial_json": piece},
            )
        yield event("content_block_stop", index=index)
        index += 1
    stop_reason = "tool_use" if answer.calls else "end_turn"
    yield event(
        "message_delta",
        delta={
            "stop_reason": "max_tokens" if answer.is_cut else stop_reason,
            "stop_sequence": None,
        },
        usage={"output_tokens": answer.tokens[1]},
    )
    yield event("message_stop")
