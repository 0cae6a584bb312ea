"""Downloads of recordings take the places of their token, as its calls do."""

import json
from typing import Any

import pytest
from asgiref.testing import ApplicationCommunicator

from config import recordings, serving
from projects.accounts import call_places
from projects.accounts.call_places import place
from projects.accounts.tokens import shown_token

_BEARER = "Bearer hl_0000000000000000_" + "A" * 43
_SCOPE = {
    "type": "http",
    "http_version": "1.1",
    "method": "GET",
    "path": f"{recordings.PATH}00000000-0000-0000-0000-000000000000",
    "query_string": b"",
    "headers": [(b"host", b"localhost"), (b"authorization", _BEARER.encode())],
}


async def test_a_download_without_a_place_is_refused(
    monkeypatch: pytest.MonkeyPatch, settings: Any
) -> None:
    settings.MAX_CALLS_PER_TOKEN = 1
    monkeypatch.setattr(call_places, "IN_LINE_PER_PLACE", 0)
    async with place(shown_token(_BEARER)):
        asked = ApplicationCommunicator(serving._http, _SCOPE)
        await asked.send_input({"type": "http.request", "body": b""})
        start, body = [await asked.receive_output(30) for _ in range(2)]
        await asked.wait(30)
    assert (start["status"], dict(start["headers"])[b"Retry-After"]) == (429, b"1")
    assert json.loads(body["body"])["code"] == "RATE_LIMITED"
    assert call_places._lines == {}


async def test_a_download_holds_its_place_until_its_last_byte() -> None:
    taken = []

    async def download(*_: object) -> None:
        taken.append(call_places._lines[shown_token(_BEARER)].taken)

    await recordings.in_a_place(download, _SCOPE, download, download)
    assert (taken, call_places._lines) == ([1], {})
