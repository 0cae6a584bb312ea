"""A program that spoils the lock of its session does not outlive its holder by that."""

import os
import signal
import sys
from collections.abc import AsyncIterator
from contextlib import suppress
from pathlib import Path

import pytest

from controller_client.protocol.messages import TerminateCmd
from tests.support.hosts.daemon_process import DaemonProcess
from tests.support.hosts.scripted_server import ScriptedServer
from tests.support.processes import is_running
from tests.support.waiting import await_until

SECONDS = 90.0
HEAD = """
import fcntl, os, shutil, signal, socket, subprocess, sys, time
from pathlib import Path
holder = os.getppid()
os.chdir(Path({state!r}, "sessions", os.environ["HOLDLINE_SESSION"]))
lock = Path("holder.lock")
while not Path("record.json").exists():
    time.sleep(0.01)
def keep(take):
    reader, writer = os.pipe()
    if (child := os.fork()) == 0:
        signal.signal(signal.SIGIO, signal.SIG_IGN)
        take(writer)
        os.write(writer, b"x")
        time.sleep(1000)
    return child, reader
"""
SPOIL = {
    "directory": "lock.unlink(); lock.mkdir()",
    "link": "lock.unlink(); lock.symlink_to(lock)",
    "socket": "lock.unlink(); socket.socket(socket.AF_UNIX).bind(str(lock))",
    "program": """
lock.unlink()
shutil.copy("/bin/sleep", lock)
subprocess.Popen([lock.resolve(), "1000"])
""",
    "lease": """
lock.unlink()
def lease(_):
    fcntl.fcntl(os.open(lock, os.O_RDWR | os.O_CREAT), fcntl.F_SETLEASE, fcntl.F_WRLCK)
os.read(keep(lease)[1], 1)
""",
    "lock": """
child, _ = keep(lambda _: fcntl.flock(os.open(lock, os.O_RDWR), fcntl.LOCK_EX))
while f" {child} " not in Path("/proc/locks").read_text():
    time.sleep(0.01)
""",
}
TAIL = """
told = Path({told!r})
if (hidden := os.fork()) == 0:
    os.setsid()
    os.execve("/bin/sleep", ["sleep", "1000"], dict())
told.with_suffix(".new").write_text(f"{{holder}} {{os.getpid()}} {{hidden}}")
told.with_suffix(".new").rename(told)
os.kill(holder, {sign})
time.sleep(1000)
"""


@pytest.fixture
async def told(tmp_path: Path) -> AsyncIterator[Path]:
    told = tmp_path / "told"
    yield told
    for pid in _pids(told):
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


def _pids(told: Path) -> list[int]:
    """The holder, its program and what the program hid."""
    return [int(pid) for pid in told.read_text().split()] if told.exists() else []


async def _begin(
    server: ScriptedServer, daemon: DaemonProcess, told: Path, spoil: str, sign: int, **more: float
) -> str:
    source = HEAD.format(state=str(daemon.state_dir)) + spoil
    source += TAIL.format(told=str(told), sign=int(sign))
    session_id = await server.begin(argv=[sys.executable, "-c", source], io_mode="pipe", **more)
    await await_until(told.exists, SECONDS, "the program to spoil the lock")
    return session_id


async def _is_all_over(daemon: DaemonProcess, told: Path) -> None:
    pids = _pids(told)
    await await_until(lambda: not any(map(is_running, pids)), SECONDS, "all to be ended")
    await await_until(lambda: not daemon.sessions(), SECONDS, "the directory to be removed")


@pytest.mark.parametrize("spoil", SPOIL.values(), ids=SPOIL)
async def test_who_spoils_the_lock_and_kills_the_holder_is_ended(
    server: ScriptedServer, daemon: DaemonProcess, told: Path, spoil: str
) -> None:
    session_id = await _begin(server, daemon, told, spoil, signal.SIGKILL)
    done = await server.done(session_id, SECONDS)
    assert (done.end_reason, done.survivors) == ("lost", [])
    await _is_all_over(daemon, told)


@pytest.mark.parametrize("spoil", [SPOIL["directory"], "lock.unlink()"], ids=["spoiled", "gone"])
@pytest.mark.parametrize("lifetime_seconds", [0, 6])
async def test_who_spoils_the_lock_and_stops_the_holder_ends_after_a_restart(
    server: ScriptedServer, daemon: DaemonProcess, told: Path, spoil: str, lifetime_seconds: float
) -> None:
    session_id = await _begin(
        *(server, daemon, told, spoil, signal.SIGSTOP), lifetime_seconds=lifetime_seconds
    )
    await daemon.kill()
    await daemon.start()
    hello = await server.connected(2)
    assert [summary.state for summary in hello.sessions] == ["running"]
    if not lifetime_seconds:
        await server.send(TerminateCmd(seq=9, session_id=session_id, grace_seconds=0.1))
    assert (await server.done(session_id, SECONDS)).survivors == []
    await _is_all_over(daemon, told)


async def test_who_spoils_the_lock_without_a_daemon_is_ended_by_the_next(
    server: ScriptedServer, daemon: DaemonProcess, told: Path
) -> None:
    await _begin(server, daemon, told, SPOIL["directory"], 0)
    await daemon.kill()
    os.kill(_pids(told)[0], signal.SIGKILL)
    await daemon.start()
    await server.connected(2)
    await _is_all_over(daemon, told)


@pytest.mark.parametrize("spoil", [SPOIL["directory"], "lock.unlink()"], ids=["spoiled", "gone"])
async def test_a_living_holder_goes_on_with_a_spoiled_lock(
    server: ScriptedServer, daemon: DaemonProcess, told: Path, spoil: str
) -> None:
    session_id = await _begin(server, daemon, told, spoil, 0)
    server.cut()
    hello = await server.connected(2)
    assert [summary.state for summary in hello.sessions] == ["running"]
    await server.send(TerminateCmd(seq=9, session_id=session_id, grace_seconds=0.1))
    done = await server.done(session_id, SECONDS)
    assert (done.end_reason, done.survivors) == ("terminated", [])
    await _is_all_over(daemon, told)
