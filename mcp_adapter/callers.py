"""Who is calling, as the guard of ``/mcp`` put it into the ASGI scope of the request."""

from typing import Any, Final

from mcp.server.context import ServerRequestContext
from mcp.shared.exceptions import MCPError
from mcp_types import INVALID_PARAMS

from projects.authentication import Caller
from projects.errors import ControllerActionError, Unauthenticated

CALLER: Final = "holdline.caller"
"""Where the verified caller stands in the scope."""
TOOLSETS_ASKED: Final = "holdline.toolsets"
"""Where the toolsets stand that its address names."""

Context = ServerRequestContext[Any, Any]


def caller_of(context: Context) -> Caller:
    """Denies by default: without a verified caller in the scope there is none (another transport, a forgotten middleware)."""
    caller = scope_of(context).get(CALLER)
    if not isinstance(caller, Caller):
        raise as_protocol_error(Unauthenticated())
    return caller


def toolsets_of(context: Context) -> tuple[str, ...]:
    """The toolsets that the address of the request names; none: everything."""
    asked: tuple[str, ...] = scope_of(context).get(TOOLSETS_ASKED, ())
    return asked


def scope_of(context: Context) -> dict[str, Any]:
    """The ASGI scope of the request; empty on a transport that has none."""
    return context.request.scope if context.request is not None else {}


def as_protocol_error(error: ControllerActionError, **data: str) -> MCPError:
    """For what has no result to carry an error in: an unknown tool, a resource, a prompt. ``data`` is added to the error's body."""
    return MCPError(code=INVALID_PARAMS, message=f"{error}. {error.hint}", data={**error.body(), **data})
