"""``holdline-mcp`` needs an address and a token, and says in one line what is wrong."""

import subprocess
import sys
from pathlib import Path

import pytest

from mcp_bridge.cli import UNAVAILABLE, USAGE, main

URL = "http://127.0.0.1:9/mcp"


@pytest.mark.parametrize(
    ("arguments", "environment", "said"),
    [
        ((), {}, "HOLDLINE_URL"),
        (("--url", URL), {}, "HOLDLINE_TOKEN"),
        ((), {"HOLDLINE_URL": "127.0.0.1:8000", "HOLDLINE_TOKEN": "hl_x"}, "must be a URL"),
        (
            (),
            {"HOLDLINE_URL": "http://holdline.example.com/mcp", "HOLDLINE_TOKEN": "hl_x"},
            "https",
        ),
        (("--url", URL, "--token-file", "/nonexistent"), {}, "/nonexistent"),
    ],
)
def test_a_missing_or_wrong_setting_is_named(
    capsys: pytest.CaptureFixture[str],
    arguments: tuple[str, ...],
    environment: dict[str, str],
    said: str,
) -> None:
    assert main(arguments, environment) == USAGE
    assert said in capsys.readouterr().err


def test_an_unknown_option_is_wrong_usage_and_help_is_not() -> None:
    codes = [
        subprocess.run(
            [sys.executable, "-m", "mcp_bridge", option], capture_output=True, check=False
        ).returncode
        for option in ("--no-such-option", "--help")
    ]
    assert codes == [USAGE, 0]


def test_an_unreachable_server_is_reported_in_one_line(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    token = tmp_path / "token"
    token.write_text("hl_secret\n")
    assert main(("--url", URL, "--token-file", str(token)), {}) == UNAVAILABLE
    said = capsys.readouterr().err
    assert said.startswith(f"holdline-mcp: {URL} failed: ")
    assert said.endswith("the call was not sent\n")
    assert "hl_secret" not in said
