"""What a client without a token, or with too weak a one, is told."""

import re
from typing import Any

import pytest

from projects.accounts.authentication import SCOPES
from projects.accounts.credentials import api_token_create
from projects.models import Controller, Project
from projects.storage.access import in_database
from tests.support.mcp.requests import modern, request

pytestmark = pytest.mark.django_db(transaction=True)

METADATA = "/.well-known/oauth-protected-resource"


def _pointer(header: str) -> str:
    found = re.search(r'resource_metadata="([^"]+)"', header)
    assert found is not None
    return found[1]


@pytest.mark.parametrize("path", [METADATA, METADATA + "/mcp"])
async def test_the_metadata_names_the_resource_and_how_to_show_a_token(path: str) -> None:
    answer = await request(method="GET", path=path)
    assert answer.status == 200
    assert answer.json == {
        "resource": "http://localhost:8000/mcp",
        "resource_name": "Holdline",
        "bearer_methods_supported": ["header"],
        "scopes_supported": list(SCOPES),
    }
    assert (await request(method="POST", path=path)).status == 405
    assert (await request(method="GET", path=path, headers={"host": "evil.example"})).status == 421


async def test_a_client_without_a_token_is_pointed_to_the_metadata() -> None:
    answer = await request(modern("list_controllers")[0])
    assert answer.status == 401
    assert _pointer(answer.headers["www-authenticate"]) == f"http://localhost:8000{METADATA}/mcp"
    assert "error=" not in answer.headers["www-authenticate"]


async def test_a_token_that_is_not_ours_is_called_invalid() -> None:
    foreign = "Bearer eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiJhIn0.c2lnbmF0dXJl"
    answer = await request(modern("list_controllers")[0], headers={"authorization": foreign})
    assert answer.status == 401
    assert 'error="invalid_token"' in answer.headers["www-authenticate"]


@pytest.mark.parametrize("era", ["newer", "older"])
async def test_a_call_without_its_scope_gets_an_error_that_a_model_can_read(
    controller: Controller, era: str
) -> None:
    # Not 403: the SDK's clients show a refused request without its body, so code and hint would be
    # lost.
    project = await in_database(Project.objects.get, id=controller.project_id)
    _, token = await in_database(
        lambda: api_token_create(project=project, name="x", scopes=("session:read",))
    )
    body, headers = modern("start_interactive_command", {"command": "true"})
    if era == "older":
        body["params"] = {"name": "start_interactive_command", "arguments": {"command": "true"}}
        headers = {"mcp-protocol-version": "2025-06-18"}
    answer = await request(body, headers={**headers, "authorization": f"Bearer {token}"})
    assert answer.status == 200
    assert b"SCOPE_MISSING" in answer.body


async def test_arguments_without_their_scope_get_an_error_that_a_model_can_read(
    controller: Controller,
) -> None:
    project = await in_database(Project.objects.get, id=controller.project_id)
    _, token = await in_database(
        lambda: api_token_create(project=project, name="x", scopes=("session:read",))
    )
    body, headers = modern(
        "send_command_input",
        {"session_id": "00000000-0000-4000-8000-000000000000", "input_text": "x"},
    )
    answer = await request(body, headers={**headers, "authorization": f"Bearer {token}"})
    assert answer.json["result"]["_meta"]["holdline/error"]["code"] == "SCOPE_MISSING"


@pytest.mark.parametrize(
    ("public", "proxy", "forwarded", "base"),
    [
        ("", None, "https", "http://localhost:8000"),
        ("", ("HTTP_X_FORWARDED_PROTO", "https"), "https", "https://localhost:8000"),
        ("https://holdline.example.com", None, "", "https://holdline.example.com"),
    ],
)
async def test_the_address_is_the_public_one(
    settings: Any, public: str, proxy: Any, forwarded: str, base: str
) -> None:
    settings.PUBLIC_URL, settings.SECURE_PROXY_SSL_HEADER = public, proxy
    answer = await request(method="GET", path=METADATA, headers={"x-forwarded-proto": forwarded})
    assert answer.json["resource"] == f"{base}/mcp"
