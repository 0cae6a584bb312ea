"""News of a call that waits: its progress, and the page where a person approves it.

Once a second a notification tells how long the call has waited, and how far the session is.

A client of the newer era that declares elicitation in URL mode shows its user the page of a held
call. The call is answered at once with the address. The client makes it again with what its user
said, and that second round waits for the answer. A page is shown once: a model that repeats the
call shall not have its user asked again and again.
"""

from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Final

from mcp.server.context import ServerRequestContext
from mcp_types import CallToolRequestParams
from mcp_types.version import MODERN_PROTOCOL_VERSIONS

from controller_client.protocol.session_state import SessionState
from mcp_adapter.callers import Context
from projects.conf import conf
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


KEY: Final = "approval"
"""The name of the request to the client in the answer."""


def shows_pages(context: Context, params: CallToolRequestParams) -> bool:
    """True for the first round of a call whose client can open an address that leads here."""
    declared = context.session.client_capabilities
    elicitation = None if declared is None else declared.elicitation
    return (
        bool(conf.public_url)
        and params.input_responses is None
        and context.protocol_version in MODERN_PROTOCOL_VERSIONS
        and elicitation is not None
        and elicitation.url is not None
    )


def arguments_of(params: CallToolRequestParams, names: Collection[str]) -> dict[str, Any] | None:
    """The arguments of this round. ``names`` are those that the tool takes.

    A second round is about the question that the first one asked, also if it was denied meanwhile.
    """
    if params.request_state is None:
        return params.arguments
    given = params.arguments or {}
    name = "requestId" if "requestId" in names else "request_id"
    return {**given, name: given.get(name) or params.request_state}


def page_of(body: Mapping[str, Any]) -> dict[str, Any]:
    """The answer that has the client show the page of a pending approval."""
    asked = {"mode": "url", "message": str(body["error"]), "url": str(body["approval_url"])}
    return {
        "resultType": "input_required",
        "requestState": str(body["request_id"]),
        "inputRequests": {KEY: {"method": "elicitation/create", "params": asked}},
    }
