"""RFC 9728 metadata and RFC 6750 challenges, for clients without a token that is good enough.

Tokens are made by an operator (``manage.py create_api_token``) and good for this server only; there
is no authorization server, so the metadata names none.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from projects.accounts.authentication import SCOPES
from projects.conf import conf

MCP_PATH: Final = "/mcp"
METADATA_PATH: Final = "/.well-known/oauth-protected-resource"
METADATA_PATHS: Final = frozenset({METADATA_PATH, METADATA_PATH + MCP_PATH})
"""RFC 9728 puts the resource's own path behind; clients try the bare one too."""

_FORWARDED: Final = b"x-forwarded-proto"


def protected_resource(scope: Mapping[str, Any]) -> dict[str, Any]:
    """The metadata document of the resource this request reached."""
    return {
        "resource": _base(scope) + MCP_PATH,
        "resource_name": "Holdline",
        "bearer_methods_supported": ["header"],
        "scopes_supported": list(SCOPES),
    }


def challenge(
    scope: Mapping[str, Any], error: str = "", scopes: Sequence[str] = ()
) -> tuple[bytes, bytes]:
    """The WWW-Authenticate header.

    ``error`` is a code of RFC 6750; empty where no token was shown.
    """
    parts = ['realm="holdline"']
    if error:
        parts.append(f'error="{error}"')
    if scopes:
        parts.append(f'scope="{" ".join(scopes)}"')
    parts.append(f'resource_metadata="{_base(scope)}{METADATA_PATH}{MCP_PATH}"')
    return b"www-authenticate", ("Bearer " + ", ".join(parts)).encode("latin-1")


def _base(scope: Mapping[str, Any]) -> str:
    """The server as this caller reaches it. The Host has been checked against those we serve."""
    if conf.public_url:
        return conf.public_url
    headers = dict(scope["headers"])
    is_secure = scope.get("scheme") == "https" or (
        conf.secure_proxy_ssl_header is not None and headers.get(_FORWARDED) == b"https"
    )
    return f"{'https' if is_secure else 'http'}://{headers.get(b'host', b'').decode('latin-1')}"
