"""Monitors while everything around them moves: rotation, kills, swaps of files; and while nothing
does.
"""

import asyncio
import os
import random
import subprocess
import sys
import threading
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.faults.conftest import IMPATIENT
from tests.support.accounts import requires
from tests.support.hosts.log_writer import follow, lines, writing
from tests.support.mcp.client import Caller
from tests.support.processes import cpu_seconds
from tests.support.stack import Stack, running_stack
from tests.support.waiting import ConditionNotMetError, wait_until

pytestmark = pytest.mark.fault

BYTES_PER_SECOND = 2_000_000


async def started(stack: Stack, path: Path) -> str:
    session_id = str(uuid.uuid4())
    async with stack.caller() as caller:
        await caller.call(
            "start_session_monitor", session_id=session_id, session_type="file", log_file=str(path)
        )
    return session_id


class Interruption(threading.Thread):
    """Does something again and again, until it is told to stop; what it raises is raised by
    ``finish``.
    """

    def __init__(self, action: object, pause_seconds: float) -> None:
        super().__init__(daemon=True)
        self._action, self._pause = action, pause_seconds
        self._over = threading.Event()
        self.times = 0
        self._error: Exception | None = None

    def run(self) -> None:
        try:
            while not self._over.wait(self._pause):
                self._action()
                self.times += 1
        except Exception as error:  # noqa: BLE001 - raised again where it is waited for
            self._error = error

    def finish(self) -> int:
        self._over.set()
        self.join(180)
        if self._error is not None:
            raise self._error
        return self.times


@contextmanager
def again_and_again(action: object, pause_seconds: float) -> Iterator[Interruption]:
    interruption = Interruption(action, pause_seconds)
    interruption.start()
    try:
        yield interruption
    finally:
        interruption.finish()


def happened(interruption: Interruption, times: int) -> None:
    """Until it did it so often, however slow everything is here."""
    wait_until(
        lambda: interruption.times >= times or not interruption.is_alive(), 180, "interruptions"
    )


def pass_time(seconds: float) -> None:
    """So long something goes on beside."""
    try:
        wait_until(lambda: False, seconds, "time to pass")
    except ConditionNotMetError:
        return


def logrotate(log: Path, pid: int) -> None:
    """One forced rotation with the real program, which has the writer open its log again."""
    configuration = log.with_suffix(".conf")
    configuration.write_text(
        f"{log} {{\n rotate 100\n create\n postrotate\n kill -HUP {pid}\n endscript\n}}\n"
    )
    configuration.chmod(0o644)
    environment = {**os.environ, "PATH": f"{os.environ['PATH']}:/usr/sbin:/sbin"}
    state = log.with_suffix(".state")
    subprocess.run(
        ["logrotate", "--force", "--state", str(state), str(configuration)],
        check=True,
        env=environment,
        capture_output=True,
    )


@pytest.fixture
def own_stack() -> Iterator[Stack]:
    with running_stack(server_environment=IMPATIENT) as stack:
        yield stack


async def test_no_byte_of_a_log_rotated_every_second_is_missing_or_doubled(
    own_stack: Stack, is_long: bool
) -> None:
    requires("logrotate")
    log, is_written = own_stack.log_root / "app.log", threading.Event()
    with writing(log, BYTES_PER_SECOND) as writer:
        session_id = await started(own_stack, log)
        following = asyncio.create_task(follow(own_stack, session_id, is_written.is_set))
        with again_and_again(lambda: logrotate(log, writer.pid), 1.0) as rotations:
            await asyncio.to_thread(pass_time, 60 if is_long else 6)
            await asyncio.to_thread(happened, rotations, 3)
        count = writer.stop()
    is_written.set()
    content, events = await asyncio.wait_for(following, 300)
    assert content == lines(count)
    assert {(event["reset_reason"], event["gap"]) for event in events} == {("rotated", None)}


async def test_kills_of_server_and_daemon_at_random_lose_and_double_nothing(
    own_stack: Stack, is_long: bool
) -> None:
    requires("logrotate")
    log, is_written = own_stack.log_root / "app.log", threading.Event()
    dice = random.Random(int.from_bytes(os.urandom(4)))

    def kill_something() -> None:
        victims = dice.choice([["server"], ["daemon"], ["daemon", "server"]])
        for victim in victims:
            getattr(own_stack, f"kill_{victim}")()
        for victim in reversed(victims):
            getattr(own_stack, f"start_{victim}")()
        pass_time(dice.random())

    with writing(log, BYTES_PER_SECOND) as writer:
        session_id = await started(own_stack, log)
        following = asyncio.create_task(follow(own_stack, session_id, is_written.is_set))
        with (
            again_and_again(lambda: logrotate(log, writer.pid), 1.0),
            again_and_again(kill_something, 0.3) as kills,
        ):
            await asyncio.to_thread(pass_time, 90 if is_long else 7)
            await asyncio.to_thread(happened, kills, 2)
            await asyncio.to_thread(kills.finish)
        count = writer.stop()
    is_written.set()
    content, events = await asyncio.wait_for(following, 300)
    assert content == lines(count)
    assert {(event["reset_reason"], event["gap"]) for event in events} <= {("rotated", None)}


_SWAP = """
import os, sys
managed, victim = sys.argv[1:]
name, inner = f"{managed}/a.log", f"{managed}/sub"
while True:
    for action in (
        lambda: open(name, "a").close(),
        lambda: (os.symlink(victim, name + ".x"), os.replace(name + ".x", name)),
        lambda: os.unlink(name),
        lambda: os.link(victim, name),
        lambda: os.unlink(name),
        lambda: os.mkdir(inner),
        lambda: open(f"{inner}/victim.log", "a").close(),
        lambda: os.rename(inner, inner + ".away"),
        lambda: os.symlink(os.path.dirname(victim), inner),
        lambda: os.unlink(inner),
        lambda: os.rename(inner + ".away", inner),
    ):
        try:
            action()
        except OSError:
            pass
"""


@contextmanager
def swapping(managed: Path, victim: Path) -> Iterator[None]:
    """Another process that puts all kinds of things in place of the log, as fast as it can."""
    with subprocess.Popen([sys.executable, "-c", _SWAP, str(managed), str(victim)]) as process:
        try:
            yield
        finally:
            process.kill()


async def test_no_swap_of_files_has_a_victim_deleted(own_stack: Stack, is_long: bool) -> None:
    victims = own_stack.root / "victims"
    victims.mkdir()
    victim = victims / "victim.log"
    victim.write_text("victim")
    managed = own_stack.session_logs
    outcomes: set[str | None] = set()
    deadline = asyncio.get_running_loop().time() + (60 if is_long else 10)
    with swapping(managed, victim):
        async with own_stack.caller() as caller:
            # It is a race: some are deleted, some are refused.
            while (left := deadline - asyncio.get_running_loop().time()) > 0 or (
                left > -120 and not {None} < outcomes
            ):
                for path in (managed / "a.log", managed / "sub" / "victim.log"):
                    outcomes.add(await _start_and_stop(caller, path))
                assert victim.read_text() == "victim"
    assert victim.read_text() == "victim"
    assert None in outcomes
    assert len(outcomes) > 1


async def _start_and_stop(caller: Caller, path: Path) -> str | None:
    session_id = str(uuid.uuid4())
    new = {"session_id": session_id, "session_type": "script", "log_file": str(path)}
    answer = await caller.client.call_tool("start_session_monitor", new)
    if answer.is_error:
        return "not started"
    reason = (await caller.call("stop_session_monitor", session_id=session_id))["log_kept_reason"]
    return None if reason is None else str(reason)


async def test_five_hundred_monitors_cost_nothing_while_nobody_asks(own_stack: Stack) -> None:
    assert own_stack.server is not None
    pids = [own_stack.server.pid, *own_stack.daemon_pids()]

    async def cost() -> float:
        """Seconds of processor time while nothing is asked for."""
        before = sum(map(cpu_seconds, pids))
        await asyncio.to_thread(pass_time, 2.5)
        return sum(map(cpu_seconds, pids)) - before

    idle = await cost()
    async with own_stack.caller() as caller:
        for number in range(500):
            log = own_stack.log_root / f"{number}.log"
            log.write_text("x\n")
            new = {"session_id": str(uuid.uuid4()), "session_type": "file", "log_file": str(log)}
            await caller.call("start_session_monitor", **new)
    # Other work of the two falls into one look or the other, but not into all of them.
    assert min([await cost() for _ in range(3)]) <= idle + 0.25
    open_files = [
        target
        for pid in pids
        for target in _open_files(pid)
        if target.startswith(str(own_stack.log_root))
    ]
    assert open_files == []


def _open_files(pid: int) -> list[str]:
    return [
        str(entry.readlink()) for entry in Path(f"/proc/{pid}/fd").iterdir() if entry.is_symlink()
    ]
