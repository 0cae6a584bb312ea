"""Refuse to send messages to this machine or into the nets behind it, unless that is allowed.

The check is made on the address that the connection is opened to, so a name that resolves to
another address a moment later leads nowhere. ``HOLDLINE_ATTENTION_NETWORKS`` allows networks.
"""

import asyncio
import socket
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from ipaddress import (
    IPv4Address,
    IPv4Network,
    IPv6Address,
    IPv6Network,
    ip_address,
    ip_network,
)
from itertools import islice, zip_longest
from typing import Any, Final

import httpcore2

from projects.conf import conf

Address = IPv4Address | IPv6Address

_GLOBAL: Final = ip_network("2000::/3")
"""The addresses of IPv6 on the internet. All others are local, old or translations."""
_NAT64: Final = ip_network("64:ff9b::/96")
_ANY_PORT: Final = 9
_MOST_ADDRESSES: Final = 4
# One that drops what it gets, such as one of IPv6 behind a net without it, leaves time for others.
_EACH_SECONDS: Final = 2.0
# A name server that hangs holds a thread of its own, and none of the server's.
_RESOLVERS: Final = ThreadPoolExecutor(4, thread_name_prefix="resolver")


class AddressRefused(OSError):
    """The target is at an address to which nothing may be sent."""


class GuardedBackend(httpcore2.AsyncNetworkBackend):
    """Opens connections for one request, to allowed addresses only."""

    def __init__(self, *, is_encrypted: bool) -> None:
        self._is_encrypted = is_encrypted
        self._inner = httpcore2.AnyIOBackend()

    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[Any] | None = None,
    ) -> httpcore2.AsyncNetworkStream:
        """Resolve the name once, and connect to the first of its addresses that answers.

        Addresses to which nothing may be sent are left out. Raises AddressRefused if none is left,
        OSError if the name does not resolve, and httpcore2.ConnectError or httpcore2.ConnectTimeout
        of the last address if none answers.
        """
        found = dict.fromkeys(await _resolved(host, port))
        allowed = [one for one in found if is_allowed(one, is_encrypted=self._is_encrypted)]
        if not allowed:
            raise AddressRefused("the address is not allowed")
        *others, last = _some_of(allowed)
        for address in others:
            with suppress(httpcore2.ConnectError, httpcore2.ConnectTimeout):
                return await self._inner.connect_tcp(
                    str(address), port, _EACH_SECONDS, local_address, socket_options
                )
        return await self._inner.connect_tcp(
            str(last), port, timeout, local_address, socket_options
        )

    async def connect_unix_socket(self, *_args: Any, **_options: Any) -> Any:
        """Raises AddressRefused: a socket of this machine is never a target."""
        raise AddressRefused("the address is not allowed")


async def _resolved(host: str, port: int) -> list[Address]:
    def resolve() -> list[Any]:
        return socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)

    found = await asyncio.get_running_loop().run_in_executor(_RESOLVERS, resolve)
    # An address of IPv6 may carry the name of an interface.
    return [ip_address(each[4][0].partition("%")[0]) for each in found]


def _some_of(addresses: Sequence[Address]) -> list[Address]:
    """The first ones, of both versions in turn: a net may have only one of the two."""
    first = addresses[0].version
    kinds = [[one for one in addresses if (one.version == first) is same] for same in (True, False)]
    turns = (one for pair in zip_longest(*kinds) for one in pair if one is not None)
    return list(islice(turns, _MOST_ADDRESSES))


def is_allowed(address: Address, *, is_encrypted: bool) -> bool:
    """True if a message may go to this address, ``is_encrypted`` or in the clear.

    Public addresses are reached through TLS only. Addresses of the machine itself, link-local and
    private ones are reached only in an allowed network.
    """
    real = _unwrapped(address)
    if any(real in network for network in _allowed_networks()):
        return True
    is_public = real.is_global and not real.is_multicast
    is_reached = is_encrypted and is_public and (real.version == 4 or real in _GLOBAL)
    return is_reached and not _is_own(real)


def _is_own(address: Address) -> bool:
    """True if an interface of this machine has the address, which may be a public one.

    The kernel is asked from where it would send to the address; nothing is sent.
    """
    family = socket.AF_INET if address.version == 4 else socket.AF_INET6
    try:
        with socket.socket(family, socket.SOCK_DGRAM) as asked:
            asked.connect((str(address), _ANY_PORT))
            return ip_address(asked.getsockname()[0].partition("%")[0]) == address
    except OSError:
        # There is no way to the address: the connection will say so.
        return False


def _unwrapped(address: Address) -> Address:
    """The IPv4 address that an IPv6 address stands for, if it stands for one."""
    if isinstance(address, IPv4Address):
        return address
    if address in _NAT64:
        return IPv4Address(int(address) & 0xFFFF_FFFF)
    if address.teredo is not None:
        return address.teredo[1]
    return address.ipv4_mapped or address.sixtofour or _compatible(address)


def _compatible(address: IPv6Address) -> Address:
    """Addresses such as ``::10.0.0.1``, which old systems route as IPv4."""
    is_old = 1 < int(address) <= 0xFFFF_FFFF
    return IPv4Address(int(address)) if is_old else address


def _allowed_networks() -> list[IPv4Network | IPv6Network]:
    return [ip_network(text) for text in conf.attention_networks]
