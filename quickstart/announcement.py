"""The announcement of a running quickstart: addresses, names, files and command lines."""

import os
import shlex
from dataclasses import dataclass
from pathlib import Path

from quickstart import clients
from quickstart.console import Console
from quickstart.options import ROOT
from quickstart.server.stack import Stack


@dataclass(frozen=True)
class Place:
    """The answer of ``manage.py bootstrap``: names, addresses and files.

    ``admin_password``: None once somebody has used it. ``is_token_suspended``: the token is refused
    until the restore of the database is confirmed.
    """

    project: str
    controller: str
    token_file: str
    is_token_suspended: bool
    credential_file: str
    client_file: str
    mcp_url: str
    console_url: str
    admin_url: str
    admin_name: str
    admin_password: str | None
    max_interactive_sessions: int
    lifetime_seconds: int


def announce(place: Place, client_files: Path, stack: Stack, console: Console) -> None:
    """Print the announcement.

    It never shows the token, nor the password of an administrator who has logged in.
    """
    manage = manage_command(stack)
    roots = ", ".join(str(root) for root in (stack.log_root, *stack.options.log_roots))
    more_files = (
        f"for Claude Desktop, VS Code and Cursor: {client_files}   "
        "(docs/howto/connect-a-client.md says where they go)"
    )
    limits = (
        f"up to {place.max_interactive_sessions} interactive sessions at once, "
        f"{_span(place.lifetime_seconds)} each   (admin > Projects > {place.project})"
    )
    password = (
        f"one-time password: {place.admin_password}   (shown once; change it when you log in)"
        if place.admin_password
        else "password: the one you use already; forgotten? "
        f"{manage} changepassword {place.admin_name}"
    )
    as_root = "this runs as root, and so does every program a caller starts here"
    one_user = (
        "programs here can read the server's keys and tokens: one user runs both, which is for "
        "trials only"
    )
    rows = [
        ("Console", f"{place.console_url}   user: {place.admin_name}"),
        ("", password),
        ("MCP endpoint", place.mcp_url),
        ("Client config", f"{place.client_file}   (holds the token; give it to your MCP client)"),
        ("", more_files),
        *clients.command_lines(place.mcp_url, place.token_file).items(),
        ("Project", f"{place.project}   controller on this machine: {place.controller}"),
        ("", limits),
        ("Monitored logs", f"{roots}   (bin/quickstart --log-root DIR opens others)"),
        ("Commands", f"{manage} help"),
        ("Admin", place.admin_url),
        *([("Note", as_root)] if os.geteuid() == 0 else []),
        ("Note", one_user),
    ]
    console.line()
    for title, text in rows:
        console.line(f"{title:<15} {text}")
    console.line()


def manage_command(stack: Stack) -> str:
    """The command that runs ``manage.py`` on this data directory, from the checkout."""
    is_default = stack.data_dir == ROOT / ".holdline"
    place = "" if is_default else f"HOLDLINE_DATA_DIR={shlex.quote(str(stack.data_dir))} "
    return f"{place}.venv/bin/python manage.py"


def _span(seconds: int) -> str:
    hours = seconds / 3600
    return f"{hours:g} hours" if seconds >= 3600 else f"{seconds} seconds"
