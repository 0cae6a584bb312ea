"""Who is at the other end of a request: the address that throttling counts by."""

from collections.abc import Mapping
from typing import Any

from django.core.handlers.asgi import ASGIRequest
from django.http import HttpRequest

from projects.conf import conf


def peer_of(scope: Mapping[str, Any]) -> str:
    """The address of an ASGI scope: the connection's, or what the outermost of our own proxies wrote into X-Forwarded-For.

    Each proxy appends who connected to it, so only the last ``conf.proxy_count`` entries are true.
    """
    client = str((scope.get("client") or ("",))[0])
    if not conf.proxy_count:
        return client
    values = [value.decode("latin-1") for name, value in scope.get("headers", ()) if name == b"x-forwarded-for"]
    entries = [entry.strip() for entry in ",".join(values).split(",") if entry.strip()]
    return entries[-conf.proxy_count][:64] if len(entries) >= conf.proxy_count else client


def peer_of_request(request: HttpRequest) -> str:
    """The same of a request of Django's."""
    return peer_of(request.scope) if isinstance(request, ASGIRequest) else str(request.META.get("REMOTE_ADDR", ""))
