"""A network that is cut, silent or slow, and a stopped daemon, lose no output and no input."""

import os
import signal
from pathlib import Path

import pytest

from tests.faults.kills.test_kills import assert_whole, oracle_command
from tests.support.mcp.client import Caller
from tests.support.proxies.chaos import ChaosProxy
from tests.support.stack import Stack
from tests.support.waiting import await_until

pytestmark = pytest.mark.fault

Proxied = tuple[Stack, ChaosProxy]


def _epoch(stack: Stack) -> int:
    return stack.database.controller_epoch(stack.provisioned.controller)


async def _connected_again(stack: Stack, epoch: int) -> None:
    await await_until(lambda: _epoch(stack) > epoch, 90, "the daemon to come back")


async def _ended_whole(stack: Stack, session_id: str, lines: int, spawn_log: Path) -> None:
    await await_until(
        lambda: stack.database.state(session_id) == "EXITED",
        60,
        "the program's end to be committed",
    )
    await assert_whole(stack, session_id, lines, spawn_log)


async def test_nothing_is_lost_when_the_connection_is_reset_again_and_again(
    proxied: Proxied, tmp_path: Path
) -> None:
    stack, proxy = proxied
    lines, spawn_log = 1600, tmp_path / "spawned"
    async with stack.caller() as caller:
        session_id = (
            await caller.start(oracle_command(lines, 0.005, spawn_log), wait_seconds=0.2)
        ).session_id
    for _ in range(3):
        epoch = _epoch(stack)
        proxy.cut()
        await _connected_again(stack, epoch)
    await _ended_whole(stack, session_id, lines, spawn_log)


async def test_nothing_is_lost_when_the_network_goes_silent_without_a_word(
    proxied: Proxied, tmp_path: Path
) -> None:
    stack, proxy = proxied
    lines, spawn_log = 1000, tmp_path / "spawned"
    async with stack.caller() as caller:
        session_id = (
            await caller.start(oracle_command(lines, 0.005, spawn_log), wait_seconds=0.2)
        ).session_id
        proxy.hold()
        offline = "the server to see the host as offline"
        await await_until(lambda: _refused_as_offline(caller), 30, offline)
    epoch = _epoch(stack)
    proxy.resume()
    await _connected_again(stack, epoch)
    await _ended_whole(stack, session_id, lines, spawn_log)


async def _refused_as_offline(caller: Caller) -> bool:
    listed = await caller.call("list_controllers")
    return not any(controller["online"] for controller in listed["controllers"])


async def test_a_stopped_daemon_resumes_without_loss_or_duplicate(
    proxied: Proxied, tmp_path: Path
) -> None:
    stack, _ = proxied
    lines, spawn_log = 1000, tmp_path / "spawned"
    async with stack.caller() as caller:
        session_id = (
            await caller.start(oracle_command(lines, 0.005, spawn_log), wait_seconds=0.2)
        ).session_id
        assert stack.daemon is not None
        epoch = _epoch(stack)
        os.kill(stack.daemon.pid, signal.SIGSTOP)
        await await_until(
            lambda: _refused_as_offline(caller), 90, "the server to see the host as offline"
        )
        os.kill(stack.daemon.pid, signal.SIGCONT)
        await _connected_again(stack, epoch)
    await _ended_whole(stack, session_id, lines, spawn_log)


async def test_a_slow_connection_in_single_bytes_carries_a_whole_conversation(
    proxied: Proxied,
) -> None:
    stack, proxy = proxied
    async with stack.caller() as caller:
        proxy.slice_bytes = 1
        session = await caller.start(
            "bash -c 'read -p \"Name: \" n; echo hello $n'", wait_seconds=20
        )
        assert session.result["state"] == "awaiting_input"
        proxy.slice_bytes, proxy.delay_seconds = 65536, 0.2
        await session.send("ada\n", wait_seconds=20)
        await session.until("exited")
        assert session.seen.endswith("hello ada\n")
