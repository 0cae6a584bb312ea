"""Who may open the controllers' socket: decided before it is accepted."""

from collections.abc import Mapping
from typing import Any
from uuid import UUID

from projects.authentication import authenticate_controller
from projects.errors import Forbidden
from projects.peers import peer_of


async def admit(scope: Mapping[str, Any]) -> tuple[UUID, UUID]:
    """(controller id, credential id) of a daemon. Raises Forbidden, Unauthenticated, RateLimited or StorageUnavailable."""
    headers: dict[bytes, bytes] = dict(scope["headers"])
    # A browser always sends Origin, a daemon never; a credential belongs in the header, not in a URL that gets logged.
    if b"origin" in headers or scope.get("query_string"):
        raise Forbidden("this socket is for daemons")
    return await authenticate_controller(headers.get(b"authorization", b"").decode("latin-1"), peer_of(scope))
