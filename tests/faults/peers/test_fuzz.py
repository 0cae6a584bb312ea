"""Fuzzing: broken frames, MCP bodies and daemons, all at once, disturb nobody else.

A run takes 60 s in CI, 15 s elsewhere and on a cluster, and ten minutes with ``--long``.
``HOLDLINE_FUZZ_SEED`` repeats a run; a failure names its seed.
"""

import asyncio
import json
import os
import random
import subprocess
import sys
import time
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import suppress
from pathlib import Path

import httpx2
import pytest
from websockets.exceptions import ConnectionClosed

from controller_client.protocol.messages import TerminateCmd
from controller_client.session_files.framing import pack
from tests.contract.protocol.frame_examples import EXAMPLES
from tests.contract.protocol.grown_examples import GROWN
from tests.support.corpora.mutations import Mutator
from tests.support.hosts.holders import Conversation, HolderHost, holder_host
from tests.support.hosts.scripted_controller import scripted_controller
from tests.support.mcp.client import Terminal
from tests.support.mcp.requests import message
from tests.support.processes import resident_bytes
from tests.support.stack import PROJECT_ROOT, Stack, deployed

pytestmark = pytest.mark.fault

_MIB = 1024 * 1024
_FRAMES = Path(__file__).resolve().parents[2] / "contract/protocol/v1"
# This lifetime is longer than the longest run.
_LIFETIME_SECONDS = 1200
_UNKNOWN = "0d9a1c52-5b8e-4b5e-9b67-3f1f2f0f4a11"


def _seconds(*, is_long: bool) -> float:
    if is_long:
        return 600.0
    # On a cluster the run is a repetition.
    is_whole = os.environ.get("CI") == "true" and deployed() is Stack
    return 30.0 if is_whole else 15.0


@pytest.fixture
def seed() -> int:
    return int(os.environ.get("HOLDLINE_FUZZ_SEED") or random.SystemRandom().randrange(1 << 32))


@pytest.fixture
async def host(tmp_path: Path) -> AsyncIterator[HolderHost]:
    async with holder_host(tmp_path) as started:
        yield started


def _frames(*without: type) -> list[bytes]:
    """Return the golden frames: one valid example of each message."""
    left_out = {kind.__struct_config__.tag for kind in without}
    lines = [
        line
        for name in ("full", "minimal", "grown")
        for line in (_FRAMES / f"{name}.jsonl").read_bytes().splitlines()
    ]
    assert len(lines) >= len(EXAMPLES) + len(GROWN)
    return [line for line in lines if json.loads(line)["type"] not in left_out]


def _bodies(session_id: str) -> list[tuple[bytes, dict[str, str]]]:
    """Return MCP requests that read, or that act on sessions that do not exist."""
    calls = [
        ("list_sessions", {"limit": 5}),
        ("list_controllers", {}),
        ("get_session", {"session_id": session_id}),
        (
            "read_session_output",
            {"session_id": session_id, "offset": 0, "max_bytes": 1024, "view": "text"},
        ),
        ("search_session_output", {"session_id": session_id, "query": "a"}),
        (
            "send_command_input",
            {"session_id": _UNKNOWN, "input_text": "x\n", "keys": ["enter"], "wait_seconds": 0},
        ),
        ("resize_session", {"session_id": _UNKNOWN, "rows": 10, "cols": 10}),
        (
            "start_interactive_command",
            {
                "command": "true",
                "controller": "nowhere",
                "env": {"A": "b"},
                "rows": 24,
                "wait_seconds": 0,
            },
        ),
        ("execute_command", {"command": "true", "controller": "nowhere", "timeout": 1000}),
        (
            "start_session_monitor",
            {
                "session_id": _UNKNOWN,
                "log_file": "/etc/shadow",
                "session_type": "file",
                "controller": "nowhere",
            },
        ),
    ]
    requests = [
        message("tools/call", {"name": tool, "arguments": arguments}) for tool, arguments in calls
    ]
    requests += [
        message(method)
        for method in (
            "tools/list",
            "resources/list",
            "prompts/list",
            "ping",
            "initialize",
            "nothing/there",
        )
    ]
    requests += [
        message("resources/read", {"uri": f"holdline://sessions/{session_id}"}),
        message("prompts/get", {"name": "x"}),
    ]
    return [(json.dumps(body).encode(), headers) for body, headers in requests]


class _Fuzzers:
    """Three fuzzers that run until ``until`` (monotonic seconds); ``counts`` has what they sent."""

    def __init__(self, stack: Stack, seed: int, until: float) -> None:
        self._stack = stack
        self._seed = seed
        self._until = until
        self.counts: Counter[str] = Counter()

    @property
    def _goes_on(self) -> bool:
        return time.monotonic() < self._until

    async def frames(self, credential: str) -> None:
        """As a controller: after HELLO, frames until the server has had enough, then again."""
        mutator, pick = Mutator(_frames(), self._seed), random.Random(self._seed)
        while self._goes_on:
            with suppress(ConnectionClosed, TimeoutError):
                async with scripted_controller(self._stack.port, credential, max_size=None) as liar:
                    if pick.random() < 0.8:
                        await liar.hello()
                    while self._goes_on:
                        frame = mutator.next()
                        with suppress(UnicodeDecodeError):
                            await liar.send_raw(frame.decode() if pick.random() < 0.9 else frame)
                        self.counts["frames"] += 1
                        await asyncio.sleep(0)
            self.counts["connections"] += 1

    async def bodies(self, session_id: str) -> None:
        """As an MCP client: every request gets an answer of the protocol."""
        corpus, pick = _bodies(session_id), random.Random(self._seed)
        mutators = [
            (Mutator([body], self._seed + number), headers)
            for number, (body, headers) in enumerate(corpus)
        ]
        bearer = {
            "Authorization": f"Bearer {self._stack.provisioned.token}",
            "Content-Type": "application/json",
        }
        async with httpx2.AsyncClient(timeout=60) as http:
            while self._goes_on:
                mutator, headers = pick.choice(mutators)
                shown = {
                    **bearer,
                    "Accept": "application/json, text/event-stream",
                    **(headers if pick.random() < 0.8 else {}),
                }
                answer = await http.post(self._stack.url, content=mutator.next(), headers=shown)
                self.counts[f"status {answer.status_code}"] += 1
                assert answer.status_code < 500, answer.text
                assert "Traceback" not in answer.text

    async def holder(self, host: HolderHost, talk: Conversation) -> None:
        """As a daemon: frames for a holder, whole or cut, until it hangs up, then again."""
        mutator, pick = Mutator(_frames(TerminateCmd), self._seed), random.Random(self._seed)
        directory = host.directory(talk.session_id)
        while self._goes_on:
            reader, writer = await asyncio.open_unix_connection(sock=directory.connect())
            with suppress(ConnectionError):
                while self._goes_on and not reader.at_eof():
                    packed = pack(mutator.next()[:200_000])
                    writer.write(
                        packed
                        if pick.random() < 0.9
                        else packed[: pick.randrange(len(packed))] + pick.randbytes(8)
                    )
                    await writer.drain()
                    self.counts["packed frames"] += 1
                    with suppress(TimeoutError):
                        await asyncio.wait_for(reader.read(1 << 16), 0.001)
            writer.transport.abort()
            self.counts["daemons"] += 1


@pytest.mark.timeout(900)
async def test_broken_frames_and_bodies_have_no_effect(
    own_stack: Stack, host: HolderHost, seed: int, is_long: bool
) -> None:
    credential = await asyncio.to_thread(_credential, own_stack)
    talk = await host.run("sleep 1000", lifetime_seconds=_LIFETIME_SECONDS)
    holder = host.holder_pid(talk.session_id)
    assert own_stack.server is not None
    async with (
        own_stack.caller() as caller,
        caller.terminal("cat", controller="host", lifetime_seconds=_LIFETIME_SECONDS) as calm,
    ):
        await calm.send("before\n")
        pids = {"server": own_stack.server.pid, "holder": holder}
        fuzzers = _Fuzzers(own_stack, seed, time.monotonic() + _seconds(is_long=is_long))
        running = [
            fuzzers.frames(credential),
            fuzzers.bodies(calm.session_id),
            fuzzers.holder(host, talk),
        ]
        base = {name: resident_bytes(pid) for name, pid in pids.items()}
        try:
            async with asyncio.TaskGroup() as group:
                for each in running:
                    group.create_task(each)
        except ExceptionGroup as error:
            raise AssertionError(f"seed {seed}: {error.exceptions}") from error
        await _still_works(calm)
        await _is_whole(host, talk)
        grown = {name: (resident_bytes(pid) - base[name]) // _MIB for name, pid in pids.items()}
    said = f"seed {seed}, {dict(fuzzers.counts)}, grown by MiB {grown}"
    assert grown["server"] < 96, said
    assert grown["holder"] < 16, said
    log = own_stack.server_log()
    assert "Traceback" not in log, said
    assert '"exception"' not in log, said
    assert (
        min(fuzzers.counts[name] for name in ("frames", "connections", "packed frames", "daemons"))
        > 10
    ), said


def _credential(stack: Stack) -> str:
    environment = {**stack.server_environment(), "DJANGO_SETTINGS_MODULE": "config.settings.base"}
    command = [sys.executable, "manage.py", "create_controller", "first", "liar"]
    made = subprocess.run(
        command, cwd=PROJECT_ROOT, env=environment, capture_output=True, text=True, check=True
    )
    return made.stdout.strip().splitlines()[-1]


async def _still_works(calm: Terminal) -> None:
    await calm.send("after\n", wait_seconds=30)
    assert calm.seen.splitlines() == ["before", "before", "after", "after"]
    assert calm.result["state"] == "awaiting_input"


async def _is_whole(host: HolderHost, talk: Conversation) -> None:
    """The holder still talks, and its program still runs."""
    again = await host.talk(talk.session_id)
    again.attach()
    await again.until(lambda: again.terminal is not None, "the holder to say what its program does")
    assert (await again.terminate(signal="SIGKILL")).failure is None
    assert (await again.done()).signal == "SIGKILL"
