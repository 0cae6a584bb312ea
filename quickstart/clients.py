"""Configurations of MCP clients for this server: command lines to print, and files to copy.

The files hold the token.
"""

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
# A small set of tools, so that a model picks the right one. Without a set, a client gets all.
_TOOLSET: Final = "agent"


def command_lines(url: str, token_file: str) -> dict[str, str]:
    """Commands that configure a client, by the client's name; they read the token's file."""
    token, narrowed = f'"$(cat {shlex.quote(token_file)})"', shlex.quote(_narrowed(url))
    header = f'"Authorization: Bearer $(cat {shlex.quote(token_file)})"'
    return {
        "Claude Code": f"claude mcp add --transport http holdline {narrowed} --header {header}",
        "Codex CLI": (
            f"export HOLDLINE_TOKEN={token}; codex mcp add holdline --url {narrowed} "
            "--bearer-token-env-var HOLDLINE_TOKEN"
        ),
        "Inspector": (
            f"npx {INSPECTOR} --cli {url} --transport http --header {header} --method "
            "tools/list --strict"
        ),
    }


def files(url: str, token: str, token_file: str) -> dict[str, Mapping[str, Any]]:
    """Contents of configuration files, by the file's name.

    ``docs/howto/connect-a-client.md`` says where a client looks for its file.
    """
    http = {"url": _narrowed(url), "headers": {"Authorization": f"Bearer {token}"}}
    # Claude Desktop starts this itself, from any directory and with almost no environment.
    bridge = {
        "command": str(PYTHON),
        "args": [
            "-m",
            "mcp_bridge",
            "--url",
            url,
            "--token-file",
            token_file,
            "--toolsets",
            _TOOLSET,
        ],
        "env": {"PYTHONPATH": str(ROOT)},
    }
    return {
        "claude_desktop_config.json": {"mcpServers": {"holdline": bridge}},
        "vscode-mcp.json": {"servers": {"holdline": {"type": "http", **http}}},
        "cursor-mcp.json": {"mcpServers": {"holdline": http}},
    }


def write(data_dir: Path, url: str, token: str, token_file: str) -> Path:
    """Write the files, readable by their owner only; returns their directory."""
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
