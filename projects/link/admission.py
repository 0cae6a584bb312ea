"""The check of a daemon's credential, before its WebSocket is accepted."""

from collections.abc import Mapping
from typing import Any
from uuid import UUID

from projects.accounts.authentication import authenticate_controller
from projects.accounts.client_address import peer_of
from projects.errors.base import Forbidden


async def admit(scope: Mapping[str, Any]) -> tuple[UUID, UUID]:
    """Authenticate a daemon. Returns (controller id, credential id).

    Raises Forbidden, Unauthenticated, RateLimited or StorageUnavailable.
    """
    headers: dict[bytes, bytes] = dict(scope["headers"])
    # A browser always sends Origin, and a daemon never does. A credential belongs in the header and
    # not in the URL, which servers log.
    if b"origin" in headers or scope.get("query_string"):
        raise Forbidden("this socket is for daemons")
    return await authenticate_controller(
        headers.get(b"authorization", b"").decode("latin-1"), peer_of(scope)
    )
