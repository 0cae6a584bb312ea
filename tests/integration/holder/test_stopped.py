"""A program that stops its holder: the session still ends when it has to."""

import asyncio
import os
import resource
import signal
import sys
from contextlib import suppress
from pathlib import Path

import pytest

from controller_client.policy.named_files import named_files
from controller_client.protocol.messages import (
    PauseLifetime,
    Started,
    StartInteractiveCmd,
    TerminateCmd,
)
from controller_client.protocol.values import NOTE_NOTHING_LEFT
from controller_client.server_link.holders.client import HolderClient
from controller_client.session_files.directory import OverdueReason, SessionDirectory
from controller_client.system.boot import lifetime_clock
from tests.support.hosts.daemon_process import ROOT, DaemonProcess, holder_pids
from tests.support.hosts.scripted_server import ScriptedServer
from tests.support.processes import is_running, pause, status_field
from tests.support.waiting import await_until

SECONDS = 90.0
STOP = "import os, signal, time\nos.kill(os.getppid(), signal.SIGSTOP)\ntime.sleep(1000)"
STOP_AGAIN_AND_AGAIN = """
import os, signal, time
holder = os.getppid()
for number in range(1, 65):
    if number not in (signal.SIGKILL, signal.SIGSTOP, signal.SIGCHLD, 32, 33):
        signal.signal(number, signal.SIG_IGN)
if os.fork() == 0:
    os.setsid()
while True:
    os.kill(holder, signal.SIGSTOP)
"""
"""Two processes stop the holder; one has left the terminal's session. Both ignore signals."""
TAKE_DESCRIPTORS = """
import os, resource, time
if os.fork() == 0:
    os.setsid()
else:
    resource.prlimit(os.getppid(), resource.RLIMIT_NOFILE, (0, 0))
time.sleep(1000)
"""
"""A holder that can open no file cannot list the processes that it has to end."""
FORGE = """
import os, signal, time
from pathlib import Path
holder = os.getppid()
os.kill(holder, signal.SIGSTOP)
sessions = Path({state!r}, "sessions")
for path in sessions.iterdir():
    (path / "holder.lock").write_text("{daemon}\\n")
    (path / "record.json").write_text('{{"boot_id":"forged","members":[],"ends_at":1e12}}')
time.sleep(1000)
"""

COMMAND = """
import os, socket, sys, time
from pathlib import Path
sys.path.insert(0, {root!r})
from controller_client.protocol.codec import encode
from controller_client.protocol.messages import PauseLifetime
from controller_client.session_files.framing import pack
session_id = os.environ["HOLDLINE_SESSION"]
os.chdir(Path({state!r}, "sessions", session_id))
connection = socket.socket(socket.AF_UNIX)
if {who!r} == "heir":
    if os.fork() == 0:
        connection.connect("holder.sock")
        os._exit(0)
    os.wait()
elif {who!r} == "orphan" and os.fork() == 0:
    os.setsid()
    parent = os.getpid()
    if os.fork() != 0:
        os._exit(0)
    while os.getppid() == parent:
        time.sleep(0.01)
elif {who!r} == "orphan":
    os.wait()
    time.sleep(1000)
if {who!r} != "heir":
    connection.connect("holder.sock")
pause = PauseLifetime(seq=10**9, session_id=session_id, is_paused=True, max_seconds=1e8)
try:
    connection.sendall(pack(encode(pause)))
    answer = connection.recv(65536)
except OSError:
    answer = b""
print(answer or "refused", flush=True)
time.sleep(1000)
"""


async def _start(
    server: ScriptedServer, source: str, *, io_mode: str = "pipe", lifetime_seconds: float = 0
) -> str:
    argv = [sys.executable, "-c", source]
    return await server.begin(argv=argv, io_mode=io_mode, lifetime_seconds=lifetime_seconds)


async def _stopped(daemon: DaemonProcess) -> tuple[SessionDirectory, int, int]:
    """The only session, its holder, which stands still, and its program."""
    (session,) = await await_until(daemon.sessions, SECONDS, "the session")
    (holder,) = await await_until(lambda: holder_pids(session), SECONDS, "its holder")
    await await_until(lambda: _stands(holder), SECONDS, "the program to stop its holder")
    return session, holder, _child(holder)


def _child(pid: int) -> int:
    return int(Path(f"/proc/{pid}/task/{pid}/children").read_text().split()[0])


def _stands(pid: int) -> bool:
    return (status_field(pid, "State") or "X")[0] == "T"


@pytest.mark.requirement("S3.P1.5")
@pytest.mark.parametrize("io_mode", ["pipe", "pty"])
async def test_terminate_ends_a_session_whose_holder_is_stopped(
    server: ScriptedServer, daemon: DaemonProcess, io_mode: str
) -> None:
    session_id = await _start(server, STOP, io_mode=io_mode)
    _, _, program = await _stopped(daemon)
    await server.send(TerminateCmd(seq=9, session_id=session_id))
    done = await server.done(session_id)
    assert (done.end_reason, done.signal, done.survivors) == ("terminated", "SIGTERM", [])
    assert not is_running(program)


@pytest.mark.requirement("S3.P1.5")
async def test_a_stopped_holder_does_not_outlast_its_lifetime(
    server: ScriptedServer, daemon: DaemonProcess
) -> None:
    session_id = await _start(server, STOP, lifetime_seconds=5)
    _, _, program = await _stopped(daemon)
    done = await server.done(session_id)
    assert (done.end_reason, done.survivors) == ("timed_out", [])
    assert not is_running(program)


async def test_a_lifetime_ends_although_neither_server_nor_first_daemon_is_there(
    server: ScriptedServer, daemon: DaemonProcess, tmp_path: Path
) -> None:
    go = tmp_path / "go"
    wait = f"import os, time\nwhile not os.path.exists({str(go)!r}): time.sleep(0.01)\n"
    session_id = await _start(server, wait + STOP, lifetime_seconds=8)
    (session,) = await await_until(daemon.sessions, SECONDS, "the session")
    await await_until(session.read_record, SECONDS, "what its holder wrote down")
    go.touch()
    _, _, program = await _stopped(daemon)
    await daemon.kill()
    await server.stop()
    await daemon.start()
    await await_until(lambda: not is_running(program), SECONDS, "the program to be ended")
    await server.start()
    assert (await server.done(session_id)).end_reason == "timed_out"


@pytest.mark.requirement("S3.P1.5")
@pytest.mark.parametrize("io_mode", ["pipe", "pty"])
async def test_a_program_that_stops_its_holder_in_a_loop_is_ended(
    server: ScriptedServer, daemon: DaemonProcess, io_mode: str
) -> None:
    session_id = await _start(server, STOP_AGAIN_AND_AGAIN, io_mode=io_mode)
    _, _, program = await _stopped(daemon)
    await server.send(TerminateCmd(seq=9, session_id=session_id, grace_seconds=0.1))
    done = await server.done(session_id)
    assert (done.end_reason in {"terminated", "lost"}, done.survivors) == (True, [])
    assert not is_running(program)


@pytest.mark.parametrize("io_mode", ["pipe", "pty"])
async def test_a_lifetime_ends_a_program_that_stops_its_holder_in_a_loop(
    server: ScriptedServer, daemon: DaemonProcess, io_mode: str
) -> None:
    session_id = await _start(server, STOP_AGAIN_AND_AGAIN, io_mode=io_mode, lifetime_seconds=5)
    _, _, program = await _stopped(daemon)
    done = await server.done(session_id)
    assert (done.end_reason in {"timed_out", "lost"}, done.survivors) == (True, [])
    assert not is_running(program)


@pytest.mark.parametrize("reason", ["terminated", "timed_out"])
async def test_a_holder_tells_why_the_daemon_killed_its_program(
    server: ScriptedServer, daemon: DaemonProcess, reason: OverdueReason
) -> None:
    session_id = await _start(server, "import time; time.sleep(1000)")
    (session,) = await await_until(daemon.sessions, SECONDS, "the session")
    program = await await_until(session.read_pid, SECONDS, "its program")
    assert program is not None
    session.write_overdue(reason)
    os.kill(program, signal.SIGKILL)
    done = await server.done(session_id)
    assert (done.end_reason, done.signal) == (reason, "SIGKILL")


async def test_a_program_that_others_killed_has_exited(
    server: ScriptedServer, daemon: DaemonProcess
) -> None:
    session_id = await _start(server, "import time; time.sleep(1000)")
    (session,) = await await_until(daemon.sessions, SECONDS, "the session")
    program = await await_until(session.read_pid, SECONDS, "its program")
    assert program is not None
    os.kill(program, signal.SIGKILL)
    done = await server.done(session_id)
    assert (done.end_reason, done.signal) == ("exited", "SIGKILL")


async def test_a_holder_that_another_process_stops_in_a_loop_is_not_waited_for(
    server: ScriptedServer, daemon: DaemonProcess
) -> None:
    session_id = await _start(server, STOP)
    _, holder, program = await _stopped(daemon)
    source = "import os, sys\nwhile True: os.kill(int(sys.argv[1]), 19)"
    stopping = await asyncio.create_subprocess_exec(
        sys.executable, "-c", source, str(holder), stderr=asyncio.subprocess.DEVNULL
    )
    try:
        await server.send(TerminateCmd(seq=9, session_id=session_id, grace_seconds=0.1))
        done = await server.done(session_id)
    finally:
        with suppress(ProcessLookupError):
            stopping.kill()
        await stopping.wait()
    assert (done.end_reason in {"terminated", "lost"}, done.survivors) == (True, [])
    assert not is_running(program)


async def test_a_holder_that_cannot_act_is_killed_and_what_it_left_is_ended(
    server: ScriptedServer, daemon: DaemonProcess
) -> None:
    session_id = await _start(server, TAKE_DESCRIPTORS)
    (session,) = await await_until(daemon.sessions, SECONDS, "the session")
    (holder,) = await await_until(lambda: holder_pids(session), SECONDS, "its holder")
    await await_until(
        lambda: resource.prlimit(holder, resource.RLIMIT_NOFILE) == (0, 0),
        SECONDS,
        "the program to limit its holder",
    )
    program = _child(holder)
    await server.send(TerminateCmd(seq=9, session_id=session_id, grace_seconds=0.1))
    done = await server.done(session_id)
    assert (done.end_reason, done.survivors) == ("lost", [])
    assert NOTE_NOTHING_LEFT in done.notes
    assert not is_running(program)
    assert not is_running(holder)


async def test_what_a_program_writes_over_its_holders_files_does_not_help(
    server: ScriptedServer, daemon: DaemonProcess
) -> None:
    session_id = await _start(
        server, FORGE.format(state=str(daemon.state_dir), daemon=daemon.pid), lifetime_seconds=6
    )
    (session,) = await await_until(daemon.sessions, SECONDS, "the session")
    await await_until(lambda: session.read_holder() == daemon.pid, SECONDS, "the forgery")
    pid = daemon.pid
    assert (await server.done(session_id)).end_reason == "timed_out"
    await await_until(
        lambda: not session.is_holder_alive(), SECONDS, "the end of the holder itself"
    )
    assert is_running(pid)


async def test_a_stopped_holder_stays_stopped_while_nothing_has_to_end(
    server: ScriptedServer, daemon: DaemonProcess
) -> None:
    session_id = await _start(server, "import time; time.sleep(1000)", lifetime_seconds=600)
    (session,) = await await_until(daemon.sessions, SECONDS, "the session")
    await await_until(session.read_pid, SECONDS, "its program")
    (holder,) = holder_pids(session)
    # The process that makes holders continues a holder when it hears of the session, which a busy
    # machine may delay. It has heard of the session before it makes holders for later ones.
    for _ in range(2):
        await server.done(await _start(server, "pass"))
    pause(holder)
    await server.send(TerminateCmd(seq=8, session_id=session_id, signal="SIGUSR1", escalate=False))
    other = await _start(server, STOP, lifetime_seconds=5)
    assert (await server.done(other)).end_reason == "timed_out"
    assert _stands(holder), "the daemon continued only the holder whose session had to end"
    os.kill(holder, signal.SIGCONT)
    assert (await server.done(session_id)).signal == "SIGUSR1"


async def test_a_holder_writes_down_when_its_lifetime_ends(
    server: ScriptedServer, daemon: DaemonProcess
) -> None:
    session_id = await _start(server, "import time; time.sleep(1000)", lifetime_seconds=600)
    (session,) = await await_until(daemon.sessions, SECONDS, "the session")
    record = await await_until(session.read_record, SECONDS, "what its holder wrote down")
    assert record.ends_at == pytest.approx(lifetime_clock() + 600, abs=30)
    await server.send(PauseLifetime(seq=8, session_id=session_id, is_paused=True, max_seconds=5000))
    await await_until(
        lambda: (session.read_record() or record).ends_at > record.ends_at + 4000,
        SECONDS,
        "the pause to be written down",
    )
    await server.send(TerminateCmd(seq=9, session_id=session_id))
    await server.done(session_id)


async def test_terminate_that_comes_during_an_approved_start_is_kept(
    server: ScriptedServer, daemon: DaemonProcess, tmp_path: Path
) -> None:
    """The host reads the approved files before it makes the session's directory."""
    large = [tmp_path / f"large{number}" for number in range(6)]
    for path in large:
        path.touch()
        os.truncate(path, 60 * 1024 * 1024)
    stop = "kill -STOP $PPID; sleep 1000; "
    line = stop + "; ".join(f"sh {path}" for path in large)
    files = await asyncio.to_thread(named_files, line, None)
    server.transcript("s-early")
    await server.send(
        StartInteractiveCmd(
            seq=1, session_id="s-early", command=line, io_mode="pipe", approved_files=files
        )
    )
    await server.send(TerminateCmd(seq=2, session_id="s-early", grace_seconds=0.1))
    done = await server.done("s-early")
    assert (done.end_reason, done.survivors) == ("terminated", [])


@pytest.mark.parametrize("who", ["child", "orphan", "heir"])
async def test_a_program_cannot_command_its_own_holder(
    server: ScriptedServer, daemon: DaemonProcess, who: str
) -> None:
    """An heir uses the connection that a child has made before it ended."""
    source = COMMAND.format(state=str(daemon.state_dir), root=str(ROOT), who=who)
    session_id = await _start(server, source, lifetime_seconds=600)
    await server.shows(session_id, b"refused")
    (session,) = daemon.sessions()
    record = await await_until(session.read_record, SECONDS, "what its holder wrote down")
    assert record.ends_at == pytest.approx(lifetime_clock() + 600, abs=60)
    await server.send(TerminateCmd(seq=9, session_id=session_id))
    assert (await server.done(session_id)).end_reason == "terminated"


async def test_a_pause_that_the_server_did_not_ask_for_ends_no_later(
    server: ScriptedServer, daemon: DaemonProcess
) -> None:
    """Any process of the user that the holder did not start can command the holder."""
    session_id = await _start(server, "import time; time.sleep(1000)", lifetime_seconds=3)
    await server.wait_for(Started)
    (session,) = daemon.sessions()
    pause = PauseLifetime(seq=10**9, session_id=session_id, is_paused=True, max_seconds=1e8)
    client, _ = await HolderClient.open(session)
    client.send(pause)
    record = await await_until(session.read_record, SECONDS, "what its holder wrote down")
    await await_until(
        lambda: (session.read_record() or record).ends_at > lifetime_clock() + 1e7,
        SECONDS,
        "the holder to take the pause",
    )
    client.close()
    assert (await server.done(session_id)).end_reason == "timed_out"
