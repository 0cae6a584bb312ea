"""Calls of the quickstart to its own server: what a refusal says."""

import json
from typing import Any, cast

import pytest
from mcp import types

from quickstart.demonstration.mcp_calls import Client, call
from quickstart.errors import ToolRefused


class Refusing:
    """A client whose every call is answered with one error body."""

    def __init__(self, body: dict[str, Any]) -> None:
        self._text = json.dumps(body)

    async def call_tool(self, *_: Any) -> types.CallToolResult:
        said = types.TextContent(type="text", text=self._text)
        return types.CallToolResult(content=[said], is_error=True)


async def test_error_and_hint_of_a_refusal_are_sentences_each() -> None:
    body = {"error": "program not found: x", "code": "PROGRAM_NOT_FOUND", "hint": "Install it."}
    with pytest.raises(ToolRefused) as refused:
        await call(cast(Client, Refusing(body)), "execute_command", {})
    assert str(refused.value) == (
        "execute_command: program not found: x. Install it. (PROGRAM_NOT_FOUND)"
    )
    assert refused.value.code == "PROGRAM_NOT_FOUND"
