"""Jobs as a caller has them: submitted, queried, completed."""

from typing import Any

from tests.support.mcp.client import Caller
from tests.support.waiting import await_until


async def submit(caller: Caller, command: str, **arguments: Any) -> str:
    return str((await caller.call("run_command", command=command, **arguments))["token"])


async def query(caller: Caller, token: str, **offsets: Any) -> dict[str, Any]:
    return await caller.call("query_command_status", token=token, **offsets)


async def completed(caller: Caller, token: str, seconds: float = 90.0) -> dict[str, Any]:
    """Return the whole answer once the job is over; earlier queries ask for no output."""

    async def is_over() -> bool:
        return bool(
            (await query(caller, token, stdout_offset=2**40, stderr_offset=2**40))["status"]
            == "completed"
        )

    await await_until(is_over, seconds, "the job to complete")
    return await query(caller, token)


async def shows(caller: Caller, token: str, stdout: str) -> dict[str, Any]:
    """Return the first answer whose whole stdout is ``stdout``."""
    found: dict[str, Any] = {}

    async def is_shown() -> bool:
        found.update(await query(caller, token))
        return bool(found["stdout"] == stdout)

    await await_until(is_shown, 90, f"stdout {stdout!r}")
    return found
