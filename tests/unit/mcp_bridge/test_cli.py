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
        *(
            (("--url", URL), {"HOLDLINE_TOKEN": f"hl_secret{odd}x"}, "no API token")
            for odd in ("\n", " ", "\0", "\N{HORIZONTAL ELLIPSIS}", "\x7f", "\u00e9", "\ud800")
        ),
        *(
            ((), {"HOLDLINE_URL": url, "HOLDLINE_TOKEN": "hl_secret"}, said)
            for url, said in (
                ("http://127.0.0.1.example.com/mcp", "https"),
                ("http://localhost@holdline.example.com/mcp", "https"),
                ("http://[::1", "Invalid"),
                ("https:///mcp", "must be a URL"),
                ("ftp://localhost/mcp", "must be a URL"),
                (" ", "must be a URL"),
            )
        ),
    ],
)
def test_a_missing_or_wrong_setting_is_named(
    capsys: pytest.CaptureFixture[str],
    arguments: tuple[str, ...],
    environment: dict[str, str],
    said: str,
) -> None:
    assert main(arguments, environment) == USAGE
    told = capsys.readouterr().err
    assert said in told
    assert "hl_secret" not in told
    assert told.count("\n") == 1


@pytest.mark.parametrize(
    ("url", "asked"),
    [
        ("http://127.0.0.1:9/mcp", "http://127.0.0.1:9/mcp?toolsets=agent"),
        ("HTTP://LOCALHOST/mcp", "http://LOCALHOST/mcp?toolsets=agent"),
        ("http://[::1]:9/mcp?a=&b=1", "http://[::1]:9/mcp?a=&b=1&toolsets=agent"),
        ("https://h.example.com/mcp?toolsets=all", "https://h.example.com/mcp?toolsets=agent"),
        ("https://h.example.com/mcp#part", "https://h.example.com/mcp?toolsets=agent"),
    ],
)
def test_toolsets_narrow_any_address(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, url: str, asked: str
) -> None:
    served = []

    async def serve(*given: str) -> None:
        served.append(given)

    monkeypatch.setattr("mcp_bridge.cli.serve", serve)
    file = tmp_path / "token"
    file.write_text(" hl_secret\r\n")
    from_file = ("--token-file", str(file))
    for arguments in (("--toolsets", "agent", *from_file), ("--toolsets=agent", *from_file)):
        assert main(("--url", url, *arguments), {"HOLDLINE_TOKEN": "hl_other"}) == 0
    assert main(from_file, {"HOLDLINE_URL": url}) == 0
    assert served == [(asked, "hl_secret")] * 2 + [(url, "hl_secret")]


def test_an_interrupt_is_no_fault_and_a_refusal_is_one(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    ended: list[BaseException] = [
        KeyboardInterrupt(),
        ExceptionGroup("outer", [ExceptionGroup("inner", [OSError("refused")])]),
        RuntimeError(),
    ]

    async def serve(*_: str) -> None:
        raise ended.pop(0)

    monkeypatch.setattr("mcp_bridge.cli.serve", serve)
    codes = [main(("--url", URL), {"HOLDLINE_TOKEN": "hl_x"}) for _ in range(len(ended))]
    assert codes == [0, UNAVAILABLE, UNAVAILABLE]
    said = capsys.readouterr().err.splitlines()
    assert said == [f"holdline-mcp: {URL} failed: {cause}" for cause in ("refused", "RuntimeError")]


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
