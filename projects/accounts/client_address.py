"""The network address of a caller, which rates of failed logins are counted by."""

import re
from collections.abc import Mapping
from ipaddress import IPv4Address, IPv6Network, ip_address
from typing import Any, Final

from django.core.handlers.asgi import ASGIRequest
from django.http import HttpRequest

from projects.conf import conf

# Some proxies append the port too, which is another one for each connection.
_WITH_PORT: Final = re.compile(r"\[([^]]*)\](?::\d+)?|([\d.]+):\d+")


def peer_of(scope: Mapping[str, Any]) -> str:
    """The address of the caller of an ASGI scope.

    Behind ``conf.proxy_count`` proxies of our own it is what the outermost of them wrote into
    X-Forwarded-For. Each proxy appends who connected to it, so only that many entries at the end
    are true.
    """
    client = str((scope.get("client") or ("",))[0])
    if not conf.proxy_count:
        return client
    values = [
        value.decode("latin-1")
        for name, value in scope.get("headers", ())
        if name == b"x-forwarded-for"
    ]
    entries = [entry.strip() for entry in ",".join(values).split(",") if entry.strip()]
    if len(entries) < conf.proxy_count:
        return client
    entry = entries[-conf.proxy_count]
    has_port = _WITH_PORT.fullmatch(entry)
    return (entry if has_port is None else has_port[1] or has_port[2] or "")[:64]


def network_of(peer: str) -> str:
    """The part of an address that has one owner: an IPv4 address, or the /64 of an IPv6 one.

    The owner of a /64 can use as many of its addresses as they like.
    """
    try:
        address = ip_address(peer.partition("%")[0])
    except ValueError:
        return peer
    if isinstance(address, IPv4Address):
        return str(address)
    return (
        str(address.ipv4_mapped)
        if address.ipv4_mapped
        else str(IPv6Network((address, 64), strict=False))
    )


def peer_of_request(request: HttpRequest) -> str:
    """The address of the caller of a Django request."""
    return (
        peer_of(request.scope)
        if isinstance(request, ASGIRequest)
        else str(request.META.get("REMOTE_ADDR", ""))
    )
