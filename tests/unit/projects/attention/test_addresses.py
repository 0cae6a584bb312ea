"""Messages never go to this machine or into the nets behind it, in whatever form it is written."""

import asyncio
import socket
from ipaddress import ip_address
from typing import Any

import httpcore2
import pytest
from django.test import override_settings

from projects.attention import addresses
from projects.attention.addresses import AddressRefused, GuardedBackend, is_allowed

INSIDE = (
    "127.0.0.1",
    "0.0.0.0",
    "10.1.2.3",
    "172.16.0.1",
    "192.168.1.1",
    "169.254.169.254",
    "100.64.0.1",
    "224.0.0.1",
    "255.255.255.255",
    "::",
    "::1",
    "fe80::1",
    "fc00::1",
    "ff02::1",
    "::ffff:127.0.0.1",
    "::ffff:10.0.0.1",
    "::127.0.0.1",
    "64:ff9b::10.0.0.1",
    "64:ff9b:1::10.0.0.1",
    "::ffff:0:10.0.0.1",
    "fec0::1",
    "2002:7f00:1::",
    "2001:0:4136:e378:8000:63bf:f5ff:fffe",
)


@pytest.mark.parametrize("text", INSIDE)
def test_addresses_inside_are_refused(text: str) -> None:
    assert not is_allowed(ip_address(text), is_encrypted=True)


@pytest.mark.parametrize("text", ["8.8.8.8", "2606:4700::1111", "::ffff:8.8.8.8"])
def test_public_addresses_are_reached_through_tls_only(text: str) -> None:
    assert is_allowed(ip_address(text), is_encrypted=True)
    assert not is_allowed(ip_address(text), is_encrypted=False)


@override_settings(ATTENTION_NETWORKS=("10.0.0.0/8", "::1/128"))
def test_an_allowed_network_is_reached_with_and_without_tls() -> None:
    for text in ("10.1.2.3", "::ffff:10.1.2.3", "::1"):
        assert is_allowed(ip_address(text), is_encrypted=False)
    assert not is_allowed(ip_address("192.168.1.1"), is_encrypted=True)


@pytest.mark.parametrize(
    "host", ["localhost", "2130706433", "0x7f.1", "0177.0.0.1", "127.1", "0", "::1"]
)
async def test_no_spelling_of_this_machine_is_connected_to(host: str) -> None:
    with pytest.raises((AddressRefused, socket.gaierror)):
        await GuardedBackend(is_encrypted=True).connect_tcp(host, 443)


@override_settings(ATTENTION_NETWORKS=("127.0.0.2/32",))
async def test_a_name_is_resolved_once_and_that_address_is_connected_to(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    answers = iter(["127.0.0.2", "127.0.0.1"])
    asked: list[str] = []

    def rebinding(host: str, *_args: Any, **_options: Any) -> list[Any]:
        asked.append(host)
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (next(answers), 0))]

    async def accept(_reader: Any, writer: Any) -> None:
        writer.close()

    server = await asyncio.start_server(accept, "127.0.0.2", 0)
    port = server.sockets[0].getsockname()[1]
    monkeypatch.setattr(addresses.socket, "getaddrinfo", rebinding)
    async with server:
        backend = GuardedBackend(is_encrypted=True)
        stream = await backend.connect_tcp("rebinding.example", port)
        assert stream.get_extra_info("server_addr")[0] == "127.0.0.2"
        await stream.aclose()
        with pytest.raises(AddressRefused):
            await backend.connect_tcp("rebinding.example", port)
    assert "rebinding.example" in asked


@override_settings(ATTENTION_NETWORKS=("127.0.0.2/32", "127.0.0.3/32"))
async def test_the_next_address_is_tried_where_one_does_not_answer(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def both(*_args: Any, **_options: Any) -> list[Any]:
        hosts = ("127.0.0.1", "127.0.0.2", "127.0.0.2", "127.0.0.3")
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (host, 0)) for host in hosts]

    async def accept(_reader: Any, writer: Any) -> None:
        writer.close()

    server = await asyncio.start_server(accept, "127.0.0.3", 0)
    port = server.sockets[0].getsockname()[1]
    monkeypatch.setattr(addresses.socket, "getaddrinfo", both)
    backend = GuardedBackend(is_encrypted=True)
    async with server:
        stream = await backend.connect_tcp("many.example", port)
        assert stream.get_extra_info("server_addr")[0] == "127.0.0.3"
        await stream.aclose()
    with pytest.raises(httpcore2.ConnectError):
        await backend.connect_tcp("many.example", port)


def test_addresses_of_both_versions_are_tried_in_turn() -> None:
    six = [ip_address(f"2001:db8::{number}") for number in range(1, 9)]
    four = [ip_address("192.0.2.1")]
    assert addresses._some_of([*six, *four]) == [six[0], four[0], six[1], six[2]]
    assert addresses._some_of([*four, *six]) == [four[0], six[0], six[1], six[2]]
    assert addresses._some_of(four) == four
