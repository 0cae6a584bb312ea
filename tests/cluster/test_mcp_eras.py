"""A session started through one server process continues through the other, in both eras of MCP.

No process keeps state of a client.
"""

import asyncio
import re
import urllib.request

import pytest

from tests.support.databases.cluster import Cluster
from tests.support.mcp.client import connect

_TURNS = 6
_TYPED = re.compile(
    r'^holdline_tool_calls_total\{outcome="ok",tool="send_command_input"\} (\d+)', re.MULTILINE
)
_SECONDS = 60


def typed_at(cluster: Cluster, number: int) -> int:
    """The number of inputs that one process has taken."""
    address = f"http://127.0.0.1:{cluster.worker_ports[number]}/metrics"
    with urllib.request.urlopen(address, timeout=_SECONDS) as answer:
        found = _TYPED.search(answer.read().decode())
    return int(found[1]) if found else 0


@pytest.mark.parametrize("mode", ["2026-07-28", "legacy"])
async def test_a_session_of_one_process_continues_through_the_other(
    cluster: Cluster, mode: str
) -> None:
    token = cluster.provisioned.token
    async with (
        connect(cluster.worker_url(0), token, mode=mode) as first,
        connect(cluster.worker_url(1), token, mode=mode) as second,
    ):
        reads = "bash -c 'while read -p \"> \" x; do echo got $x; done'"
        session = await first.start(reads, wait_seconds=30)
        assert session.result["prompt"]["text"].endswith("> ")
        for turn, caller in enumerate((second, first, second)):
            session.caller = caller
            answer = await session.send(f"{turn}\n", wait_seconds=30)
            assert (answer["state"], answer["output"].splitlines()[1]) == (
                "awaiting_input",
                f"got {turn}",
            )
        resource = f"holdline://session/{session.session_id}/transcript"
        assert (await first.client.read_resource(resource)).contents == (
            await second.client.read_resource(resource)
        ).contents
        session.caller = first
        assert (await session.terminate())["state"] == "exited"
        assert (await second.call("get_session", session_id=session.session_id))[
            "state"
        ] == "exited"


@pytest.mark.parametrize("mode", ["2026-07-28", "legacy"])
async def test_one_client_behind_the_proxy_is_served_by_both_in_turn(
    cluster: Cluster, mode: str
) -> None:
    before = [
        await asyncio.to_thread(typed_at, cluster, number) for number in range(cluster.WORKER_COUNT)
    ]
    async with cluster.caller(mode=mode) as caller, caller.terminal("cat") as session:
        for turn in range(_TURNS):
            answer = await session.send(f"line {turn}\n", wait_seconds=30)
            assert answer["output"].splitlines() == [f"line {turn}"] * 2
    after = [
        await asyncio.to_thread(typed_at, cluster, number) for number in range(cluster.WORKER_COUNT)
    ]
    assert all(now > then for now, then in zip(after, before, strict=True)), (before, after)
