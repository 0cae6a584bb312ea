"""Clients that go away in the middle of a wait, on real sockets: nothing of them stays in the
server, and the program never notices.
"""

import asyncio
import itertools
import json
import re
import socket
import struct
import urllib.request
from collections.abc import Iterator
from typing import NamedTuple

import pytest

from tests.support.mcp.requests import message
from tests.support.processes import open_descriptors, status_field
from tests.support.stack import SERVERS, Stack
from tests.support.waiting import ConditionNotMetError, await_until

CLIENTS, AT_ONCE = 100, 25
_SECONDS = 60.0
# Well before the calls would have ended by themselves.
_SETTLE_SECONDS = 20.0
_RESET = struct.pack("ii", 1, 0)
# Of each way to go away there are sixteen clients: if they left anything, it would be more than
# this.
_ALLOWED = (3, 12, 3, 3)
_TASKS = re.compile(r"^holdline_tasks (\d+)", re.MULTILINE)


class Held(NamedTuple):
    """What the server's process holds."""

    threads: int
    descriptors: int
    sockets: int
    tasks: int

    def is_as(self, before: "Held") -> bool:
        """But for what a server opens when it first needs it: a thread of a pool with its files, a
        task that stands by.
        """
        return all(
            now <= then + allowed for now, then, allowed in zip(self, before, _ALLOWED, strict=True)
        )


@pytest.fixture(params=SERVERS)
def own_stack(request: pytest.FixtureRequest) -> Iterator[Stack]:
    """A server whose figures no other test changes."""
    stack: Stack = type("OwnStack", (Stack,), {"SERVER_KIND": request.param})()
    try:
        yield stack.start()
    finally:
        stack.stop()


def held(stack: Stack) -> Held:
    assert stack.server is not None
    with urllib.request.urlopen(
        f"http://127.0.0.1:{stack.port}/metrics", timeout=_SECONDS
    ) as answer:
        tasks = _TASKS.search(answer.read().decode())
    assert tasks is not None
    descriptors = open_descriptors(stack.server.pid).values()
    threads = int(status_field(stack.server.pid, "Threads") or 0)
    return Held(
        threads,
        len(descriptors),
        sum(name.startswith("socket:") for name in descriptors),
        int(tasks[1]),
    )


def request_for(stack: Stack, session_id: str, number: int) -> bytes:
    """A wait of 30 s; in the two eras by turns, and every third one without progress."""
    arguments = {"session_id": session_id, "wait_seconds": 30}
    body, headers = message("tools/call", {"name": "send_command_input", "arguments": arguments})
    if number % 2:
        body["params"]["_meta"], headers = {}, {"mcp-protocol-version": "2025-06-18"}
    if _is_plain(number):
        body["params"]["_meta"], headers = {}, {"mcp-protocol-version": "2025-06-18"}
    else:
        body["params"]["_meta"] = {**body["params"]["_meta"], "progressToken": number}
    data = json.dumps(body).encode()
    lines = {
        "host": f"127.0.0.1:{stack.port}",
        "authorization": f"Bearer {stack.provisioned.token}",
        "content-type": "application/json",
        "accept": "application/json, text/event-stream",
        "content-length": str(len(data)),
        **headers,
    }
    head = ["POST /mcp HTTP/1.1", *(f"{name}: {value}" for name, value in lines.items()), "", ""]
    return "\r\n".join(head).encode() + data


def _is_plain(number: int) -> bool:
    return number % 3 == 2


async def wait_and_go_away(stack: Stack, session_id: str, number: int) -> None:
    """Leaves once the call has said that it waits; every fourth client does it by a reset."""
    reader, writer = await asyncio.open_connection("127.0.0.1", stack.port)
    try:
        writer.write(request_for(stack, session_id, number))
        async with asyncio.timeout(_SECONDS):
            await reader.readuntil(b": open" if _is_plain(number) else b"notifications/progress")
        if number % 4 == 0:
            writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
    finally:
        writer.close()


async def await_as_before(stack: Stack, before: Held) -> None:
    """Until the server holds what it held."""
    seen: list[Held] = []

    async def is_as_before() -> bool:
        seen.append(await asyncio.to_thread(held, stack))
        return seen[-1].is_as(before)

    try:
        await await_until(is_as_before, _SETTLE_SECONDS, "the server to hold what it held")
    except ConditionNotMetError as error:
        raise AssertionError(f"{error}: {before}, now {seen[-1]}") from None


async def test_a_hundred_departed_clients_leave_nothing_and_the_program_runs_on(
    own_stack: Stack,
) -> None:
    stack, numbers = own_stack, itertools.count()

    async def crowd(clients: int) -> None:
        await asyncio.gather(
            *(wait_and_go_away(stack, session.session_id, next(numbers)) for _ in range(clients))
        )

    async with stack.caller() as caller:
        session = await caller.start(
            "bash -c 'while sleep 0.1; do echo tick; done'", wait_seconds=0, lifetime_seconds=280
        )
        await session.until_output("tick")
        before = await asyncio.to_thread(held, stack)
        for _ in range(CLIENTS // AT_ONCE):
            await crowd(AT_ONCE)
        await await_as_before(stack, before)
        printed = stack.database.accounted_bytes(session.session_id)[0]
        await await_until(
            lambda: stack.database.accounted_bytes(session.session_id)[0] > printed,
            _SECONDS,
            "the program to print on",
        )
        assert (await session.terminate())["state"] == "exited"
        await stack.database.await_verified(session.session_id)
    assert '"level": "error"' not in stack.server_log().lower(), stack.server_log()
