"""Stacks of a test's own, to be harmed."""

from collections.abc import Iterator

import pytest

from tests.support.ports import free_port
from tests.support.proxies.chaos import ChaosProxy, chaos_proxy
from tests.support.stack import Stack, running_stack

# Long enough not to be missed on a busy machine, short enough to wait for.
IMPATIENT = {
    "HOLDLINE_HEARTBEAT_SECONDS": "1",
    "HOLDLINE_DEAD_AFTER_SECONDS": "4",
    "HOLDLINE_LEASE_SECONDS": "6",
    "HOLDLINE_SWEEP_SECONDS": "1",
}


@pytest.fixture
def own_stack() -> Iterator[Stack]:
    """A server and a daemon for one test."""
    with running_stack() as started:
        yield started


@pytest.fixture
def proxied() -> Iterator[tuple[Stack, ChaosProxy]]:
    """A stack whose daemon reaches its server through a proxy, with short heartbeats."""
    port = free_port()
    with (
        chaos_proxy(port) as proxy,
        running_stack(port=port, daemon_port=proxy.port, server_environment=IMPATIENT) as started,
    ):
        yield started, proxy
