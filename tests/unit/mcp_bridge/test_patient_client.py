"""The bridge turns answers of older servers and proxies into errors of the protocol."""

import json
from typing import Any

import httpx2
import pytest

from mcp_bridge.patient_client import PatientClient

_PROTOCOL_ERROR = {
    "jsonrpc": "2.0",
    "id": None,
    "error": {"code": -32602, "message": "no such tool", "data": {"code": "UNKNOWN_TOOL"}},
}


async def _answer(status: int, body: bytes, method: str = "POST") -> tuple[int, dict[str, Any]]:
    async with PatientClient("hl_x") as client:
        client._transport = httpx2.MockTransport(
            lambda _request: httpx2.Response(status, content=body)
        )
        client._mounts = {}
        response = await client.request(method, "http://localhost/mcp")
        return response.status_code, response.json() if response.content[:1] == b"{" else {}


@pytest.mark.parametrize(
    ("status", "body", "code", "said"),
    [
        (
            401,
            b'{"error": "no valid credential", "hint": "Ask for a token.", "code": "X"}',
            -32603,
            "no valid credential. Ask for a token.",
        ),
        (413, b'{"error": "too large"}', -32603, "413 Content Too Large: too large"),
        (502, b"<html>down</html>", -32603, "502 Bad Gateway: no reason given"),
        (
            404,
            b"",
            -32601,
            "404 Not Found: no reason given. Does the address end in /mcp?",
        ),
        (
            403,
            b"<!doctype html>",
            -32603,
            "403 Forbidden: no reason given. Does the address end in /mcp?",
        ),
        (500, b"[1]", -32603, "no reason given"),
    ],
)
async def test_a_refusal_keeps_the_words_of_the_server(
    status: int, body: bytes, code: int, said: str
) -> None:
    answered, message = await _answer(status, body)
    assert (answered, message["error"]["code"]) == (status, code)
    assert said in message["error"]["message"]


async def test_errors_of_the_protocol_and_other_answers_stay_as_they_are() -> None:
    assert await _answer(400, json.dumps(_PROTOCOL_ERROR).encode()) == (400, _PROTOCOL_ERROR)
    assert await _answer(405, b'{"error": "only POST"}', method="GET") == (
        405,
        {"error": "only POST"},
    )
    assert await _answer(200, b"{}") == (200, {})
