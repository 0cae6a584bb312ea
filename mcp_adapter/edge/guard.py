"""Checks the Host and Origin headers of requests for ``/mcp`` before anything else.

A page in a browser on the same machine must not reach the endpoint by another name (DNS rebinding)
or from another origin.
"""

from collections.abc import Mapping
from functools import lru_cache
from urllib.parse import urlsplit

from django.http.request import split_domain_port, validate_host

from projects.conf import conf

MISDIRECTED = 421
FORBIDDEN = 403


def refusal_status(headers: Mapping[bytes, bytes]) -> int | None:
    """The HTTP status of a refusal; None if Host and Origin are fine.

    421 for a Host that is not served here, 403 for an Origin that is neither ours nor allowed.
    """
    if not is_host_served(headers):
        return MISDIRECTED
    host = headers.get(b"host", b"").decode("latin-1")
    origin = headers.get(b"origin")
    if origin is not None and not _is_allowed_origin(origin.decode("latin-1"), host):
        return FORBIDDEN
    return None


def is_host_served(headers: Mapping[bytes, bytes]) -> bool:
    """True if the Host is one of HOLDLINE_ALLOWED_HOSTS."""
    return _is_allowed_host(headers.get(b"host", b"").decode("latin-1"), conf.allowed_hosts)


@lru_cache(maxsize=64)
def _is_allowed_host(host: str, allowed: tuple[str, ...]) -> bool:
    domain, _ = split_domain_port(host)
    return bool(domain) and validate_host(domain, allowed)


def _is_allowed_origin(origin: str, host: str) -> bool:
    if origin in conf.allowed_origins:
        return True
    try:
        parts = urlsplit(origin)
    except ValueError:
        return False
    return parts.scheme in {"http", "https"} and parts.netloc.lower() == host.lower()
