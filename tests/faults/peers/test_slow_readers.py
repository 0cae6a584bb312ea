"""Answers that their peers take slowly or not at all, on each of the web servers."""

import socket
import threading
from collections.abc import Iterator
from contextlib import suppress

import pytest

from tests.faults.answer_sizes import MIB, WHOLE_BYTES
from tests.support.processes import open_descriptors, resident_bytes, status_field
from tests.support.proxies.raw_http import chunk, head
from tests.support.stack import SERVERS, Stack, running_stack
from tests.support.waiting import wait_until

pytestmark = pytest.mark.fault

_IDLE_SECONDS = "3"
_BLOCK = 512 * 1024


@pytest.fixture(scope="module", params=SERVERS)
def served(request: pytest.FixtureRequest) -> Iterator[Stack]:
    """A stack behind each of the servers, which waits for nobody longer than a moment."""
    usual = Stack.SERVER_KIND, Stack.APPLICATION
    Stack.SERVER_KIND, Stack.APPLICATION = request.param, "tests.faults.large_answers:application"
    try:
        with running_stack(server_environment={"HOLDLINE_IDLE_SECONDS": _IDLE_SECONDS}) as started:
            yield started
    finally:
        Stack.SERVER_KIND, Stack.APPLICATION = usual


def _pid(stack: Stack) -> int:
    assert stack.server is not None
    return stack.server.pid


def _sockets(stack: Stack) -> int:
    return sum(name.startswith("socket:") for name in open_descriptors(_pid(stack)).values())


def _asking(stack: Stack, path: str, *lines: str) -> socket.socket:
    """A connection that has asked for ``path``."""
    peer = socket.create_connection(("127.0.0.1", stack.port), timeout=30)
    peer.sendall(head(path, *lines, method="GET"))
    return peer


def test_what_a_peer_does_not_take_is_not_made_and_ends(served: Stack) -> None:
    base, before = resident_bytes(_pid(served)), _sockets(served)
    with _asking(served, "/large") as peer:
        assert peer.recv(1024).startswith(b"HTTP/1.1 200")
        wait_until(lambda: _sockets(served) <= before, 90, "the connection to be given up")
    peak = int((status_field(_pid(served), "VmHWM") or "0 kB").split()[0]) * 1024
    assert peak - base < 64 * MIB


def test_a_peer_that_takes_an_answer_slowly_gets_all_of_it(served: Stack) -> None:
    """It takes longer than an idle connection may stay open."""
    taken, pause = 0, threading.Event()
    with _asking(served, "/whole", "Connection: close") as peer:
        while block := peer.recv(_BLOCK, socket.MSG_WAITALL):
            taken += len(block)
            pause.wait(0.5)
    assert taken > WHOLE_BYTES


def test_nothing_is_read_while_an_answer_waits(served: Stack) -> None:
    base = resident_bytes(_pid(served))
    with _asking(served, "/large") as peer, suppress(OSError):
        peer.settimeout(2)
        peer.sendall(head("/nowhere", "Transfer-Encoding: chunked"))
        for _ in range(128):
            peer.sendall(chunk(bytes(MIB)))
    assert resident_bytes(_pid(served)) - base < 64 * MIB


def test_an_answer_to_head_has_no_body(served: Stack) -> None:
    """What follows on the connection would be taken for the next answer."""
    taken = b""
    with socket.create_connection(("127.0.0.1", served.port), timeout=30) as peer:
        peer.sendall(head("/whole", method="HEAD"))
        while not taken.endswith(b"\r\n\r\n"):
            taken += peer.recv(1)
        peer.sendall(head("/nowhere", "Connection: close", method="GET"))
        # A balancer in front may close the connection after each answer.
        assert peer.recv(9, socket.MSG_WAITALL) in {b"HTTP/1.1 ", b""}
