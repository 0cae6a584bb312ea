"""A call of a tool is answered with the same bytes by the server itself and by the SDK.

Each request goes both ways. ``PLAIN`` are the requests that the server answers itself; it has to
leave all of ``LEFT`` to the SDK.
"""

import json
from functools import partial
from http import HTTPStatus
from typing import Any, Final
from uuid import uuid4

import pytest
from mcp_types.version import HANDSHAKE_PROTOCOL_VERSIONS, LATEST_MODERN_VERSION

from mcp_adapter import asgi
from mcp_adapter.server import build_server
from projects.accounts.credentials import api_token_create
from projects.conf import conf
from projects.models import Controller, Project
from projects.storage.access import in_database
from tests.support.mcp.requests import META, Answer, request
from tests.support.rows import make_controller

pytestmark = pytest.mark.django_db(transaction=True)

ERAS: Final = (None, *HANDSHAKE_PROTOCOL_VERSIONS, LATEST_MODERN_VERSION)
_SESSION: Final = str(uuid4())

Headers = dict[str, str]


@pytest.fixture
async def controller() -> Controller:
    return await in_database(make_controller)


@pytest.fixture
async def bearer(controller: Controller) -> Headers:
    project = await in_database(Project.objects.get, id=controller.project_id)
    _, token = await in_database(
        lambda: api_token_create(project=project, name="tests", scopes=("session:read",))
    )
    return {"authorization": f"Bearer {token}"}


def _call(
    era: str | None, tool: str = "list_controllers", **changes: Any
) -> tuple[dict[str, Any], Headers]:
    """Body and headers of a call; ``changes`` are of its parameters, None leaves one out."""
    params = {"name": tool, "arguments": {}}
    headers = {} if era is None else {"mcp-protocol-version": era}
    if era == LATEST_MODERN_VERSION:
        params["_meta"] = META
        headers |= {"mcp-method": "tools/call", "mcp-name": tool}
    kept = {name: value for name, value in {**params, **changes}.items() if value is not None}
    return {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": kept}, headers


async def _answers(
    body: Any, headers: Headers, monkeypatch: pytest.MonkeyPatch, query: str = ""
) -> tuple[Answer, Answer, bool]:
    """The server's answer, the SDK's, and True if the server's was not made by the SDK."""
    managers = []
    manager = asgi.StreamableHTTPSessionManager

    def counted(**given: Any) -> Any:
        managers.append(given)
        return manager(**given)

    monkeypatch.setattr(asgi, "StreamableHTTPSessionManager", counted)
    ours = await request(body, headers=headers, query=query)
    is_direct = not managers
    by_sdk = await request(
        body,
        headers=headers,
        query=query,
        application=partial(asgi.serve, make_server=build_server),
    )
    return ours, by_sdk, is_direct


def _assert_same(ours: Answer, by_sdk: Answer) -> None:
    assert (ours.status, ours.raw_headers, ours.body) == (
        by_sdk.status,
        by_sdk.raw_headers,
        by_sdk.body,
    )


PLAIN: Final[dict[str, tuple[str, dict[str, Any]]]] = {
    "a result": ("list_controllers", {}),
    "a list": ("list_sessions", {"arguments": {"limit": 3}}),
    "an error": ("get_session", {"arguments": {"session_id": _SESSION}}),
    "a wrong argument": ("get_session", {"arguments": {"session_id": "\u00e9\u2028<&>"}}),
    "an argument that is not known": ("list_controllers", {"arguments": {"x\u00fc": [1.5, None]}}),
    "a scope that is missing": ("start_command", {"arguments": {"command": "true"}}),
    "no arguments": ("list_controllers", {"arguments": None}),
}


@pytest.mark.parametrize("case", PLAIN)
async def test_a_plain_call_has_the_same_answer_both_ways(
    bearer: Headers, monkeypatch: pytest.MonkeyPatch, case: str
) -> None:
    for era in ERAS:
        tool, changes = PLAIN[case]
        body, headers = _call(era, tool, **changes)
        ours, by_sdk, is_direct = await _answers(body, {**bearer, **headers}, monkeypatch)
        _assert_same(ours, by_sdk)
        assert ours.status == 200
        assert is_direct


@pytest.mark.parametrize("identifier", [0, -7, 2**52, "1", "", 'x\u00e9\u2028"\\', "\U0001f600"])
async def test_the_id_of_a_call_comes_back_as_it_was(
    bearer: Headers, monkeypatch: pytest.MonkeyPatch, identifier: object
) -> None:
    for era in ERAS:
        body, headers = _call(era)
        ours, by_sdk, is_direct = await _answers(
            {**body, "id": identifier}, {**bearer, **headers}, monkeypatch
        )
        _assert_same(ours, by_sdk)
        assert is_direct
        data = ours.body.split(b"data: ")[-1]
        assert json.loads(data)["id"] == identifier


@pytest.mark.parametrize("broken", [b"1.5", b"true", b"[1]", b"NaN"])
async def test_an_id_that_is_none_is_refused_where_the_sdk_answers_nothing(
    bearer: Headers, monkeypatch: pytest.MonkeyPatch, broken: bytes
) -> None:
    for era in ERAS:
        body, headers = _call(era)
        text = json.dumps(body).encode().replace(b'"id": 1', b'"id": ' + broken)
        ours, _, _ = await _answers(text, {**bearer, **headers}, monkeypatch)
        assert ours.status == HTTPStatus.BAD_REQUEST
        assert ours.json["error"]["data"]["code"] == "REQUEST_NOT_UNDERSTOOD"


@pytest.mark.parametrize(
    "shown",
    [
        {"content-type": "application/json; charset=utf-8"},
        {"content-type": "application/json;x"},
        {"accept": "*/*"},
        {"accept": "application/json;q=0.5, text/*"},
        {"accept": "Text/Event-Stream,Application/JSON"},
        {"mcp-session-id": "abc"},
        {"mcp-param-limit": "5"},
        {"last-event-id": "7"},
    ],
)
async def test_headers_that_are_fine_are_so_both_ways(
    bearer: Headers, monkeypatch: pytest.MonkeyPatch, shown: Headers
) -> None:
    for era in ERAS:
        body, headers = _call(era)
        ours, by_sdk, is_direct = await _answers(body, {**bearer, **headers, **shown}, monkeypatch)
        _assert_same(ours, by_sdk)
        assert (ours.status, is_direct) == (200, True)


LEFT: Final[dict[str, dict[str, Any]]] = {
    "progress": {"params": {"name": "list_controllers", "_meta": {"progressToken": 1}}},
    "a progress token that is none": {
        "params": {"name": "list_controllers", "_meta": {"progressToken": [1]}}
    },
    "_meta that is no object": {"params": {"name": "list_controllers", "_meta": [1]}},
    "a task": {"params": {"name": "list_controllers", "task": {"ttl": 1}}},
    "an answer of an earlier round": {
        "params": {"name": "list_controllers", "inputResponses": {}, "requestState": "x"}
    },
    "a member that is not known": {"params": {"name": "list_controllers", "more": 1}},
    "no name": {"params": {"arguments": {}}},
    "a name that is no text": {"params": {"name": 7}},
    "arguments that are no object": {"params": {"name": "list_controllers", "arguments": [1]}},
    "no parameters": {"params": None},
    "a list of parameters": {"params": ["list_controllers"]},
    "another method": {"method": "tools/list", "params": {}},
    "a method that is not known": {"method": "tools/no"},
    "a method that is no text": {"method": 7},
    "a notification": {"method": "notifications/initialized", "params": {}, "id": None},
    "a call without an id": {"id": None},
    "a very large id": {"id": 2**70},
    "another revision of JSON-RPC": {"jsonrpc": "1.0"},
    "one more member": {"extra": 1},
    "a tool that is not known": {"params": {"name": "no_such_tool"}},
}


@pytest.mark.parametrize("case", LEFT)
async def test_a_call_that_is_not_plain_is_the_sdks(
    bearer: Headers, monkeypatch: pytest.MonkeyPatch, case: str
) -> None:
    for era in ERAS:
        body, headers = _call(era)
        changes = json.loads(json.dumps(LEFT[case]))
        if era == LATEST_MODERN_VERSION and isinstance(changes.get("params"), dict):
            meta = changes["params"].get("_meta", {})
            if isinstance(meta, dict):
                changes["params"]["_meta"] = {**META, **meta}
            headers["mcp-name"] = str(changes["params"].get("name", ""))
            headers["mcp-method"] = str(changes.get("method", "tools/call"))
        sent = {name: value for name, value in {**body, **changes}.items() if value is not None}
        ours, by_sdk, is_direct = await _answers(sent, {**bearer, **headers}, monkeypatch)
        _assert_same(ours, by_sdk)
        assert not is_direct


@pytest.mark.parametrize(
    "spoil",
    [
        lambda _: b"",
        lambda _: b"{",
        lambda _: b"null",
        lambda text: b"[" + text + b"]",
        lambda text: b"[" + text + b"," + text + b"]",
        lambda text: text + b"x",
        lambda text: text.replace(b"list_controllers", b"\xff"),
        lambda text: text.replace(b"list_controllers", b"\\ud800"),
        lambda text: text.replace(b'"id": 1', b'"id": 1' + b"0" * 5000),
        lambda text: b"[" * 100_000,
        lambda _: b" " * (conf.data_upload_max_memory_size + 1),
    ],
)
async def test_a_spoiled_body_is_the_sdks(
    bearer: Headers, monkeypatch: pytest.MonkeyPatch, spoil: Any
) -> None:
    for era in ERAS:
        body, headers = _call(era)
        text = spoil(json.dumps(body).encode())
        ours, by_sdk, is_direct = await _answers(text, {**bearer, **headers}, monkeypatch)
        _assert_same(ours, by_sdk)
        assert not is_direct


@pytest.mark.parametrize(
    "shown",
    [
        {"content-type": "text/plain"},
        {"content-type": ""},
        {"content-type": "application/json-patch+json"},
        {"content-type": "Application/Json"},
        {"content-length": "99999999999"},
        {"accept": "application/json"},
        {"accept": "text/event-stream"},
        {"accept": "text/html"},
        {"accept": ""},
        {"mcp-protocol-version": "1999-01-01"},
        {"mcp-protocol-version": "x"},
    ],
)
async def test_headers_that_are_wrong_are_the_sdks(
    bearer: Headers, monkeypatch: pytest.MonkeyPatch, shown: Headers
) -> None:
    for era in ERAS:
        body, headers = _call(era)
        ours, by_sdk, is_direct = await _answers(body, {**bearer, **headers, **shown}, monkeypatch)
        _assert_same(ours, by_sdk)
        assert not is_direct


@pytest.mark.parametrize(
    ("shown", "meta"),
    [
        ({"mcp-method": "tools/list"}, META),
        ({"mcp-method": ""}, META),
        ({"mcp-name": "list_sessions"}, META),
        ({"mcp-name": ""}, META),
        ({}, None),
        ({}, {}),
        ({}, {**META, "io.modelcontextprotocol/protocolVersion": "2025-06-18"}),
        ({}, {**META, "io.modelcontextprotocol/protocolVersion": 7}),
        ({}, {**META, "io.modelcontextprotocol/clientCapabilities": 7}),
        ({}, {**META, "io.modelcontextprotocol/clientInfo": {"name": 1}}),
        ({"mcp-protocol-version": "2025-06-18"}, {"x": None, "progressToken": True}),
    ],
)
async def test_an_envelope_that_is_wrong_is_the_sdks(
    bearer: Headers, monkeypatch: pytest.MonkeyPatch, shown: Headers, meta: Any
) -> None:
    body, headers = _call(LATEST_MODERN_VERSION, _meta=meta)
    if meta is None:
        del body["params"]["name"]
    ours, by_sdk, is_direct = await _answers(body, {**bearer, **headers, **shown}, monkeypatch)
    _assert_same(ours, by_sdk)
    assert not is_direct


@pytest.mark.parametrize(
    ("query", "status"), [("toolsets=agent", 200), ("toolsets=jobs", None), ("toolsets=no", 400)]
)
async def test_toolsets_of_the_address_hold_both_ways(
    bearer: Headers,
    monkeypatch: pytest.MonkeyPatch,
    query: str,
    status: int | None,
) -> None:
    for era in ERAS:
        body, headers = _call(era)
        ours, by_sdk, is_direct = await _answers(body, {**bearer, **headers}, monkeypatch, query)
        _assert_same(ours, by_sdk)
        # A set that is not known is refused before anything is built.
        assert is_direct is (status is not None)
        assert ours.status == (status or (400 if era == LATEST_MODERN_VERSION else 200))


async def test_who_may_not_call_is_refused_alike(monkeypatch: pytest.MonkeyPatch) -> None:
    for era in ERAS:
        body, headers = _call(era)
        ours, by_sdk, _ = await _answers(body, headers, monkeypatch)
        _assert_same(ours, by_sdk)
        assert ours.status == 401
