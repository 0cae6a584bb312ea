"""Sessions as resources, for clients that let people attach what a program printed.

Addresses are ``holdline://session/<id>/transcript``.
"""

import re
from datetime import UTC, datetime
from typing import Final
from uuid import UUID

from mcp_types import (
    ListResourcesResult,
    ListResourceTemplatesResult,
    PaginatedRequestParams,
    ReadResourceRequestParams,
    ReadResourceResult,
    Resource,
    ResourceTemplate,
    TextResourceContents,
)

from mcp_adapter.callers import Context, as_protocol_error, caller_of
from projects import services
from projects.errors.base import ControllerActionError
from projects.errors.calls import InvalidArgument
from projects.errors.sessions import SessionNotFound
from projects.reads.results import SessionStatus
from projects.sessions.turns import MAX_OUTPUT_BYTES, MIN_OUTPUT_BYTES

PAGE_SESSIONS: Final = 50
_URI: Final = re.compile(
    r"holdline://session/([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})/transcript", re.IGNORECASE
)
_MIME: Final = "text/plain"
_SCOPE: Final = "session:read"

_TEMPLATE: Final = ResourceTemplate(
    name="session_transcript",
    title="Transcript of a session",
    uri_template="holdline://session/{session_id}/transcript",
    description="What the program printed, as text: all of it, or its newest 256 KiB.",
    mime_type=_MIME,
)


async def list_resources(
    context: Context, params: PaginatedRequestParams | None
) -> ListResourcesResult:
    """The project's sessions, newest first, by pages; none for a token that may not read them."""
    caller = caller_of(context)
    if not caller.may(_SCOPE):
        return ListResourcesResult(resources=[])
    before = _position(params.cursor) if params is not None and params.cursor else None
    try:
        page = await services.session_list(caller.project_id, limit=PAGE_SESSIONS, before=before)
    except ControllerActionError as error:
        raise as_protocol_error(error) from None
    return ListResourcesResult(
        resources=[_describe(session) for session in page.sessions],
        next_cursor=page.next_before.isoformat() if page.next_before is not None else None,
    )


async def list_resource_templates(
    _context: Context, _params: PaginatedRequestParams | None
) -> ListResourceTemplatesResult:
    """The one form of address there is."""
    return ListResourceTemplatesResult(resource_templates=[_TEMPLATE])


async def read_resource(context: Context, params: ReadResourceRequestParams) -> ReadResourceResult:
    """The newest output of the session as text. Another project's session does not exist."""
    caller = caller_of(context)
    try:
        caller.require(_SCOPE)
        match = _URI.fullmatch(params.uri)
        if match is None:
            raise SessionNotFound("at this address")
        text = await _transcript(caller.project_id, UUID(match[1]))
    except ControllerActionError as error:
        raise as_protocol_error(error, uri=params.uri) from None
    return ReadResourceResult(
        contents=[TextResourceContents(uri=params.uri, mime_type=_MIME, text=text)]
    )


async def _transcript(project_id: UUID, session_id: UUID) -> str:
    start = await services.session_read_output(project_id, session_id, max_bytes=MIN_OUTPUT_BYTES)
    if start.next_offset >= start.total_bytes:
        return start.output
    offset = max(0, start.total_bytes - MAX_OUTPUT_BYTES)
    newest = await services.session_read_output(
        project_id, session_id, offset=offset, max_bytes=MAX_OUTPUT_BYTES
    )
    return f"[{offset} bytes before]\n{newest.output}" if offset else newest.output


def _position(cursor: str) -> datetime:
    try:
        given = datetime.fromisoformat(cursor)
        # As the database compares it. At the ends of the calendar there is no such moment.
        position = given.astimezone(UTC) if given.tzinfo is not None else None
    except (ValueError, OverflowError):
        position = None
    if position is None:
        raise as_protocol_error(InvalidArgument(["cursor: not one that this server gave"]))
    return position


def _describe(session: SessionStatus) -> Resource:
    return Resource(
        uri=f"holdline://session/{session.session_id}/transcript",
        name=f"session_{session.session_id}",
        title=session.command[:120],
        description=(
            f"{session.state} on {session.controller}, since "
            f"{session.created_at.isoformat(timespec='seconds')}"
        ),
        mime_type=_MIME,
    )
