"""The address that rates count by: written by our own proxies, never claimed by a caller."""

from typing import Any

import pytest

from projects.accounts.client_address import network_of, peer_of


def _scope(*headers: str) -> dict[str, Any]:
    return {
        "client": ("192.0.2.1", 4711),
        "headers": [(b"x-forwarded-for", header.encode()) for header in headers],
    }


@pytest.mark.parametrize(
    ("proxies", "headers", "peer"),
    [
        (0, ("203.0.113.9",), "192.0.2.1"),
        (1, (), "192.0.2.1"),
        (1, ("198.51.100.7",), "198.51.100.7"),
        (1, ("203.0.113.9, 198.51.100.7",), "198.51.100.7"),
        (1, ("203.0.113.9", "198.51.100.7"), "198.51.100.7"),
        (2, ("203.0.113.9, 198.51.100.7, 10.0.0.1",), "198.51.100.7"),
        (2, ("10.0.0.1",), "192.0.2.1"),
        (1, ("203.0.113.9, 198.51.100.7:50123",), "198.51.100.7"),
        (1, ("[2001:db8::7]:50123",), "2001:db8::7"),
        (1, ("[2001:db8::7]",), "2001:db8::7"),
        (1, ("2001:db8::7",), "2001:db8::7"),
    ],
    ids=[
        "none of ours",
        "no header",
        "one",
        "one said by the peer",
        "two headers",
        "two proxies",
        "fewer than there are proxies",
        "with a port",
        "IPv6 with a port",
        "IPv6 in brackets",
        "IPv6",
    ],
)
def test_only_what_our_own_proxies_appended_counts(
    settings: Any, proxies: int, headers: tuple[str, ...], peer: str
) -> None:
    settings.PROXY_COUNT = proxies
    assert peer_of(_scope(*headers)) == peer


@pytest.mark.parametrize(
    ("peer", "network"),
    [
        ("192.0.2.1", "192.0.2.1"),
        ("2001:db8:1:2:aaaa::1", "2001:db8:1:2::/64"),
        ("2001:db8:1:2:bbbb::9%eth0", "2001:db8:1:2::/64"),
        ("::ffff:192.0.2.1", "192.0.2.1"),
        ("unix", "unix"),
    ],
)
def test_a_network_of_ipv6_is_one_peer(peer: str, network: str) -> None:
    assert network_of(peer) == network
