"""Progress notifications while a call waits.

Once a second they tell how long the call has waited, and how far the session is.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from mcp.server.context import ServerRequestContext

from controller_client.protocol.session_state import SessionState
from projects.sessions.waiting import REPORT, Progress


@contextmanager
def reporting(context: ServerRequestContext[Any, Any]) -> Iterator[None]:
    """Reports to the caller of this request, if it gave a progress token.

    Without a token nothing is asked of the database.
    """
    if "progress_token" not in (context.meta or {}):
        yield
        return

    async def report(progress: Progress) -> None:
        # Seconds, as progress must grow with every report and output need not.
        await context.session.report_progress(
            round(progress.waited_seconds, 3), progress.wait_seconds, _words(progress)
        )

    token = REPORT.set(report)
    try:
        yield
    finally:
        REPORT.reset(token)


def _words(progress: Progress) -> str:
    # To a caller a program that its host has not confirmed yet is being started.
    state = (
        "starting"
        if progress.state in {SessionState.PENDING, SessionState.SENT}
        else progress.state.lower()
    )
    return f"{state}, {progress.output_bytes} bytes of output so far"
