"""Monitors as tests start them through the official client."""

import uuid
from pathlib import Path
from typing import Any

from tests.support.mcp.client import Caller
from tests.support.stack import Stack


def new_log(stack: Stack, content: str = "", name: str | None = None) -> Path:
    """Makes a recording in the directory of session logs."""
    path = stack.session_logs / (name or f"{uuid.uuid4()}.log")
    path.write_text(content)
    return path


async def started(caller: Caller, path: Path | str, **arguments: Any) -> str:
    """Starts a monitor of ``path`` and returns its id."""
    session_id = str(uuid.uuid4())
    await caller.call(
        "start_session_monitor",
        session_id=session_id,
        session_type="file",
        log_file=str(path),
        **arguments,
    )
    return session_id


async def code_of(caller: Caller, tool: str, **arguments: Any) -> str:
    return str((await caller.refusal(tool, **arguments))["code"])
