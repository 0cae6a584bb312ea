"""The official TypeScript clients hold a whole session: the first generation, and its successor in
both eras of the protocol.
"""

import json
from pathlib import Path

import pytest

from tests.support.mcp.node_packages import NodePackages
from tests.support.stack import Stack

SCRIPT = Path(__file__).resolve().parents[2] / "data" / "node_scripts" / "session.mjs"
_SECONDS = 120


@pytest.mark.parametrize(
    ("package", "era"),
    [
        ("@modelcontextprotocol/sdk", "legacy"),
        ("@modelcontextprotocol/client", "legacy"),
        ("@modelcontextprotocol/client", "modern"),
    ],
)
def test_a_whole_session_with_errors_and_progress(
    stack: Stack, node_packages: NodePackages, package: str, era: str
) -> None:
    done = node_packages.run(
        "--input-type=module",
        "-",
        package,
        era,
        stack.url,
        stack.provisioned.token,
        stdin=SCRIPT,
        seconds=_SECONDS,
    )
    assert done.returncode == 0, done.stderr
    seen = json.loads(done.stdout)
    assert ["start_interactive_command", True] in seen["tools"]
    assert all(has_schema for _, has_schema in seen["tools"])
    assert [(turn["state"], (turn["prompt"] or {}).get("text")) for turn in seen["turns"][:2]] == [
        ("awaiting_input", "Name: "),
        ("awaiting_input", "Number: "),
    ]
    assert (seen["turns"][-1]["state"], seen["turns"][-1]["exit_code"]) == ("exited", 0)
    assert seen["transcript"].splitlines()[-1] == "Hello Ada 42"
    # A client checks structured content against the output schema, also that of an error.
    assert [error["code"] for error in seen["errors"]] == [
        "SESSION_NOT_FOUND",
        "UNKNOWN_ARGUMENT",
        "SESSION_ENDED",
    ]
    assert all(error["isError"] and not error["hasStructured"] for error in seen["errors"])
    assert seen["unknown"] == -32602
    assert seen["progress"]
    assert "start_interactive_command" in seen["prompt"]
