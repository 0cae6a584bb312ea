"""Configurations of MCP clients for this server: command lines to print, and files to copy from, which hold the token."""

import json
import os
import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from quickstart.environment import PYTHON
from quickstart.options import ROOT

DIRECTORY: Final = "clients"
INSPECTOR: Final = "@modelcontextprotocol/inspector@2.12.0"
# Few tools, so that a model picks the right one; without it a client is shown all of them.
_TOOLSET: Final = "agent"


def command_lines(url: str, token_file: str) -> dict[str, str]:
    """What to run for clients that are configured by a command, by the client's name. They read the token from its file."""
    token, narrowed = f'"$(cat {shlex.quote(token_file)})"', shlex.quote(_narrowed(url))
    header = f'"Authorization: Bearer $(cat {shlex.quote(token_file)})"'
    return {
        "Claude Code": f"claude mcp add --transport http holdline {narrowed} --header {header}",
        "Codex CLI": f"export HOLDLINE_TOKEN={token}; codex mcp add holdline --url {narrowed} --bearer-token-env-var HOLDLINE_TOKEN",
        "Inspector": f"npx {INSPECTOR} --cli {url} --transport http --header {header} --method tools/list --strict",
    }


def files(url: str, token: str, token_file: str) -> dict[str, Mapping[str, Any]]:
    """Configurations for clients that read a file, by the file's name. Each goes where ``docs/howto/connect-a-client.md`` says."""
    http = {"url": _narrowed(url), "headers": {"Authorization": f"Bearer {token}"}}
    # It starts its servers itself, from anywhere and with next to no environment.
    bridge = {
        "command": str(PYTHON),
        "args": ["-m", "mcp_bridge", "--url", url, "--token-file", token_file, "--toolsets", _TOOLSET],
        "env": {"PYTHONPATH": str(ROOT)},
    }
    return {
        "claude_desktop_config.json": {"mcpServers": {"holdline": bridge}},
        "vscode-mcp.json": {"servers": {"holdline": {"type": "http", **http}}},
        "cursor-mcp.json": {"mcpServers": {"holdline": http}},
    }


def write(data_dir: Path, url: str, token: str, token_file: str) -> Path:
    """The files, readable by their owner only; the directory they are in."""
    directory = data_dir / DIRECTORY
    directory.mkdir(mode=0o700, exist_ok=True)
    for name, content in files(url, token, token_file).items():
        path = directory / name
        path.unlink(missing_ok=True)
        with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
            file.write(json.dumps(content, indent=2) + "\n")
    return directory


def _narrowed(url: str) -> str:
    return f"{url}?toolsets={_TOOLSET}"
