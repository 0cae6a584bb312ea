"""The caller of a request, as the guard of ``/mcp`` put it into the request's ASGI scope."""

from typing import Any, Final

from mcp.server.context import ServerRequestContext
from mcp.shared.exceptions import MCPError
from mcp_types import INVALID_PARAMS

from controller_client.protocol.sentences import sentences
from projects.accounts.authentication import Caller
from projects.errors.access import Unauthenticated
from projects.errors.base import ControllerActionError

CALLER: Final = "holdline.caller"
"""The key of the verified caller in the scope."""
TOOLSETS_ASKED: Final = "holdline.toolsets"
"""The key of the toolsets that the request's address names."""

Context = ServerRequestContext[Any, Any]


def caller_of(context: Context) -> Caller:
    """The verified caller of the request. Raises MCPError if there is none.

    Access is denied by default, as on another transport or without the middleware.
    """
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
    """For what has no result to carry an error in: an unknown tool, a resource, a prompt.

    ``data`` is added to the error's body.
    """
    body = error.body()
    return MCPError(
        code=INVALID_PARAMS, message=sentences(body["error"], body["hint"]), data={**body, **data}
    )
