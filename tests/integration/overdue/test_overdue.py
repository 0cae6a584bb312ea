"""A session that has to end, and its holder: without its directory, and with output that waits."""

import os
import signal
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from controller_client.protocol.messages import TerminateCmd
from controller_client.system.boot import lifetime_clock
from tests.support.hosts.daemon_process import DaemonProcess
from tests.support.hosts.scripted_server import ScriptedServer
from tests.support.processes import is_running
from tests.support.waiting import ConditionNotMetError, await_until

SECONDS = 90.0
VANISH = """
import os, signal, time
from pathlib import Path
for number in (signal.SIGTERM, signal.SIGHUP):
    signal.signal(number, signal.SIG_IGN)
holder = os.getppid()
directory = Path({state!r}, "sessions", os.environ["HOLDLINE_SESSION"])
while not directory.joinpath("record.json").exists():
    time.sleep(0.01)
directory.rename({away!r})
if {is_replaced!r}:
    directory.mkdir()
Path({told!r} + ".new").write_text(f"{{holder}} {{os.getpid()}}")
os.rename({told!r} + ".new", {told!r})
if {signal!r}:
    os.kill(holder, {signal!r})
time.sleep(1000)
"""


@pytest.fixture
def daemon(daemon: DaemonProcess, tmp_path: Path) -> Iterator[DaemonProcess]:
    """The daemon; what a program told of itself and its holder is killed after the test."""
    yield daemon
    told = tmp_path / "told"
    for pid in told.read_text().split() if told.exists() else []:
        with suppress(ProcessLookupError):
            os.kill(int(pid), signal.SIGKILL)


async def _vanished(
    server: ScriptedServer,
    daemon: DaemonProcess,
    *,
    sign: int,
    is_replaced: bool = False,
    lifetime_seconds: float = 0,
) -> tuple[str, int, int]:
    """A session without its directory, its holder and its program."""
    told = daemon.state_dir.parent / "told"
    source = VANISH.format(
        state=str(daemon.state_dir),
        away=str(daemon.state_dir.parent / "away"),
        told=str(told),
        signal=int(sign),
        is_replaced=is_replaced,
    )
    session_id = await server.begin(
        argv=[sys.executable, "-c", source], io_mode="pipe", lifetime_seconds=lifetime_seconds
    )
    try:
        await await_until(told.exists, SECONDS, "the program to move its session away")
    except ConditionNotMetError as error:
        heard = server.transcript(session_id)
        raise AssertionError(f"{error}; the server heard {heard}; {daemon.log}") from None
    holder, program = told.read_text().split()
    return session_id, int(holder), int(program)


@pytest.mark.parametrize("is_replaced", [False, True])
@pytest.mark.parametrize("sign", [0, signal.SIGSTOP, signal.SIGKILL])
async def test_terminate_ends_a_program_that_moved_its_session_away(
    server: ScriptedServer, daemon: DaemonProcess, sign: int, is_replaced: bool
) -> None:
    session_id, holder, program = await _vanished(
        server, daemon, sign=sign, is_replaced=is_replaced
    )
    await server.send(TerminateCmd(seq=9, session_id=session_id, grace_seconds=0.1))
    done = await server.done(session_id, SECONDS)
    assert (done.end_reason in {"terminated", "lost"}, done.survivors) == (True, [])
    assert not is_running(program)
    await await_until(lambda: not is_running(holder), SECONDS, "the holder to end")


async def test_a_lifetime_ends_a_program_that_moved_its_session_away(
    server: ScriptedServer, daemon: DaemonProcess
) -> None:
    session_id, _, program = await _vanished(
        server, daemon, sign=signal.SIGSTOP, lifetime_seconds=8
    )
    done = await server.done(session_id, SECONDS)
    assert (done.end_reason in {"timed_out", "lost"}, done.survivors) == (True, [])
    assert not is_running(program)


async def test_a_session_that_moved_away_without_a_server_is_ended(
    server: ScriptedServer, daemon: DaemonProcess
) -> None:
    _, holder, program = await _vanished(server, daemon, sign=signal.SIGSTOP)
    server.cut()
    await server.connected(2)
    await await_until(lambda: not is_running(program), SECONDS, "the program to be ended")
    await await_until(lambda: not is_running(holder), SECONDS, "the holder to be ended")


async def test_a_holder_whose_output_waits_for_the_server_is_not_killed(
    server: ScriptedServer, daemon: DaemonProcess
) -> None:
    server.acknowledges = False
    source = "import os\nwhile True: os.write(1, b'x' * 4096)"
    session_id = await server.begin(
        argv=[sys.executable, "-c", source], io_mode="pipe", ring_bytes=65536, overflow="block"
    )
    await server.shows(session_id, b"x" * 65536)
    await server.send(TerminateCmd(seq=9, session_id=session_id, grace_seconds=0.1))
    # A holder that does not act is killed after 5 s and then 10 s.
    late = lifetime_clock() + 16.5
    await await_until(lambda: lifetime_clock() > late, SECONDS, "the daemon to have looked")
    server.acknowledges = True
    server.cut()
    assert (await server.done(session_id, SECONDS)).end_reason == "terminated"


async def test_a_holder_that_is_stopped_at_once_does_not_outlast_its_lifetime(
    server: ScriptedServer, daemon: DaemonProcess
) -> None:
    """The program may be faster than its holder, which has not told of the start then."""
    argv = ["/bin/sh", "-c", "kill -STOP $PPID; exec sleep 1000"]
    lifetime_seconds = 15
    begins = lifetime_clock()
    begun = [await server.begin(argv=argv, lifetime_seconds=lifetime_seconds) for _ in range(10)]
    ends = [
        (await server.done(session_id, 3 * lifetime_seconds)).end_reason for session_id in begun
    ]
    assert ends == ["timed_out"] * len(begun)
    # A lifetime that began when the stopped holder went on would be over after the double.
    assert lifetime_clock() < begins + 2 * lifetime_seconds
