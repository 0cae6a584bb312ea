"""Who may even speak to ``/mcp``: Host and Origin headers, before anything else is looked at.

A page in a browser on the same machine must not reach the endpoint by another name (DNS rebinding) or from another origin.
"""

from collections.abc import Mapping
from functools import lru_cache
from urllib.parse import urlsplit

from django.http.request import split_domain_port, validate_host

from projects.conf import conf

MISDIRECTED = 421
FORBIDDEN = 403


def refusal_status(headers: Mapping[bytes, bytes]) -> int | None:
    """421 for a Host we do not serve, 403 for an Origin that is neither ours nor allowed, None if both are fine."""
    host = headers.get(b"host", b"").decode("latin-1")
    if not _is_allowed_host(host, conf.allowed_hosts):
        return MISDIRECTED
    origin = headers.get(b"origin")
    if origin is not None and not _is_allowed_origin(origin.decode("latin-1"), host):
        return FORBIDDEN
    return None


@lru_cache(maxsize=64)
def _is_allowed_host(host: str, allowed: tuple[str, ...]) -> bool:
    domain, _ = split_domain_port(host)
    return bool(domain) and validate_host(domain, allowed)


def _is_allowed_origin(origin: str, host: str) -> bool:
    if origin in conf.allowed_origins:
        return True
    parts = urlsplit(origin)
    return parts.scheme in {"http", "https"} and parts.netloc.lower() == host.lower()
