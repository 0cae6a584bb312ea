"""The official MCP client, with the few methods a test needs: call a tool, drive a terminal."""

import asyncio
import json
import logging
import time
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import httpx2
from mcp import Client
from mcp.client.streamable_http import streamable_http_client
from mcp.shared._httpx_utils import create_mcp_http_client

from tests.support.mcp.declared_codes import check_code, declared_codes
from tests.support.waiting import ConditionNotMetError

logger = logging.getLogger(__name__)

# Seconds. On a busy machine a connection may wait long.
_PATIENCE = httpx2.Timeout(120, read=300)


class ToolRefusedError(AssertionError):
    """The tool answered with an error; ``body`` is the error body."""

    def __init__(self, body: dict[str, Any]) -> None:
        self.body = body
        super().__init__(json.dumps(body))

    @property
    def code(self) -> str:
        return str(self.body["code"])


@dataclass
class Terminal:
    """One session as its caller sees it.

    ``result`` is the last answer, ``seen`` all output shown so far.
    """

    caller: "Caller"
    result: dict[str, Any]
    seen: str = ""
    turns: list[dict[str, Any]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._take(self.result)

    def _take(self, result: dict[str, Any]) -> dict[str, Any]:
        self.result = result
        self.seen += result["output"]
        self.turns.append(result)
        return result

    @property
    def session_id(self) -> str:
        return str(self.result["session_id"])

    @property
    def kind(self) -> str | None:
        """The kind of input for which the program waits; None while it does not wait."""
        return self.result["prompt"]["kind"] if self.result.get("prompt") else None

    @property
    def evidence(self) -> str | None:
        """The evidence that the program waits; None while it does not wait."""
        return self.result["prompt"]["evidence"] if self.result.get("prompt") else None

    async def send(self, text: str = "", **arguments: Any) -> dict[str, Any]:
        """Type ``text`` (or ``keys=…``), and return the result of the turn."""
        return self._take(
            await self.caller.call(
                "send_command_input", session_id=self.session_id, input_text=text, **arguments
            )
        )

    async def keys(self, *names: str, **arguments: Any) -> dict[str, Any]:
        """Press named keys, and return the result of the turn."""
        return await self.send(keys=list(names), **arguments)

    async def until(self, state: str, seconds: float = 60.0) -> dict[str, Any]:
        """Wait, by calls that wait themselves, until the session is in ``state``."""
        deadline = time.monotonic() + seconds
        while self.result["state"] != state:
            if time.monotonic() > deadline:
                raise ConditionNotMetError(f"state {state}", seconds, self.result)
            await self.send(wait_seconds=2)
        return self.result

    async def until_output(self, text: str, seconds: float = 60.0) -> dict[str, Any]:
        """Wait, by calls that wait themselves, until ``text`` has been shown."""
        deadline = time.monotonic() + seconds
        while text not in self.seen:
            if time.monotonic() > deadline or self.result["state"] == "exited":
                raise ConditionNotMetError(f"output {text!r}", seconds, self.seen[-2000:])
            await self.send(wait_seconds=1)
        return self.result

    async def screen(self) -> str:
        """The rendered screen of the terminal, as text."""
        answer = await self.caller.call(
            "read_session_output", session_id=self.session_id, view="screen"
        )
        return str(answer["output"])

    async def terminate(self) -> dict[str, Any]:
        """End the session, and return the last result."""
        return await self.send(terminate=True)


class Caller:
    """One client connection with one token."""

    def __init__(self, client: Client) -> None:
        self.client = client

    async def call(self, tool: str, **arguments: Any) -> dict[str, Any]:
        """Call a tool and return its structured result. Raises ToolRefusedError for an error."""
        answer = await self.client.call_tool(tool, arguments)
        text = "".join(part.text for part in answer.content if part.type == "text")
        if answer.is_error:
            assert answer.structured_content is None, (
                "clients validate structuredContent against the output schema"
            )
            body = json.loads(text)
            check_code(tool, body["code"], declared_codes(tool))
            raise ToolRefusedError(body)
        assert answer.structured_content == json.loads(text)
        return dict(answer.structured_content)

    async def refusal(self, tool: str, **arguments: Any) -> dict[str, Any]:
        """The error body of a call that must be refused."""
        try:
            result = await self.call(tool, **arguments)
        except ToolRefusedError as refused:
            return refused.body
        raise AssertionError(f"{tool} was not refused: {result}")

    async def start(self, command: str, **arguments: Any) -> Terminal:
        """Start an interactive command, and return its session."""
        return Terminal(
            self, await self.call("start_interactive_command", command=command, **arguments)
        )

    @asynccontextmanager
    async def terminal(self, command: str, **arguments: Any) -> AsyncIterator[Terminal]:
        """A session that is ended after the block."""
        session = await self.start(command, **arguments)
        try:
            yield session
        finally:
            if session.result["state"] != "exited":
                await session.terminate()


async def _tell_refusal(response: httpx2.Response) -> None:
    """Log an answer that is an error. The client says of one without JSON-RPC only that it is."""
    if response.is_error:
        body = await response.aread()
        logger.warning("%s: %s %r", response.url, response.status_code, body[:2000])


@asynccontextmanager
async def connect(url: str, token: str, *, mode: str = "auto") -> AsyncIterator[Caller]:
    """A client session over streamable HTTP with a bearer token.

    It must be entered and left in the same task. An exception of the block is raised unchanged; the
    client's task groups would wrap it in groups of groups.
    """
    raised: Exception | None = None
    http = create_mcp_http_client(headers={"Authorization": f"Bearer {token}"}, timeout=_PATIENCE)
    http.event_hooks["response"].append(_tell_refusal)
    async with (
        http,
        Client(streamable_http_client(url, http_client=http), mode=mode) as client,
    ):
        try:
            yield Caller(client)
        except Exception as error:  # noqa: BLE001 - raised again below
            raised = error
    if raised is not None:
        raise raised


@asynccontextmanager
async def detached(session: AbstractAsyncContextManager[Caller]) -> AsyncIterator[Caller]:
    """A client session that lives in a task of its own.

    pytest leaves a fixture in another task than the one that entered it, and the client must be
    left in the same task.
    """
    is_over = asyncio.Event()
    opened: asyncio.Future[Caller] = asyncio.get_running_loop().create_future()

    async def live() -> None:
        async with session as caller:
            opened.set_result(caller)
            await is_over.wait()

    task = asyncio.create_task(live())
    either: set[asyncio.Future[Any]] = {task, opened}
    await asyncio.wait(either, return_when=asyncio.FIRST_COMPLETED)
    try:
        if not opened.done():
            task.result()
        yield opened.result()
    finally:
        is_over.set()
        await asyncio.gather(task, return_exceptions=True)
