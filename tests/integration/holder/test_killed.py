"""A program that kills its holder: what it left behind is found, ended and named."""

import os
import signal
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from controller_client.protocol.codec import encode
from controller_client.protocol.messages import (
    InteractiveCmdDone,
    TerminateCmd,
)
from controller_client.protocol.values import NOTE_NOTHING_LEFT
from tests.support.hosts.daemon_process import DaemonProcess, daemon_process, holder_pids
from tests.support.hosts.scripted_server import ScriptedServer
from tests.support.processes import is_running, send_signal
from tests.support.waiting import await_until

SECONDS = 55
HIDDEN = """
import os, sys, time
for number in range({count}):
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            for descriptor in range(256):
                try:
                    os.close(descriptor)
                except OSError:
                    pass
            os.execve({program!r}, {argv!r}, {{}})
        os._exit(0)
    os.wait()
{then}
"""
LEAVE = "import signal; os.kill(os.getppid(), signal.SIGKILL); time.sleep(1000)"
"""What ends the holder, whose child the program is."""


@pytest.fixture
async def daemon(server: ScriptedServer, tmp_path: Path) -> AsyncIterator[DaemonProcess]:
    async with daemon_process(tmp_path, server.url) as daemon:
        yield daemon


def _program(
    tmp_path: Path, argv: list[str], *, then: str, count: int = 1
) -> tuple[list[str], str]:
    """Arguments of a Python that hides ``argv`` and does ``then``; and a name by which those are
    found again.
    """
    name = f"hidden-{tmp_path.name[-8:]}"
    program = tmp_path / name
    program.symlink_to(sys.executable if argv[0] == "python" else f"/bin/{argv[0]}")
    source = HIDDEN.format(
        program=str(program), argv=[str(program), *argv[1:]], then=then, count=count
    )
    return [sys.executable, "-c", source], str(program)


def _running(program: str) -> list[int]:
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                words = (entry / "cmdline").read_bytes().split(b"\0")
            except OSError:
                continue
            if words[0] == program.encode() and is_running(int(entry.name)):
                found.append(int(entry.name))
    return found


FORK_FOR_EVER = """
import os, time
# A test that is interrupted leaves nothing behind for longer than this.
end = time.monotonic() + 120
while time.monotonic() < end:
    if os.fork():
        os._exit(0)
    time.sleep(0.002)
"""
KILL_THE_FORK_SERVER_TOO = (
    """
holder = os.getppid()
fork_server = int(open(f"/proc/{holder}/stat").read().rpartition(")")[2].split()[1])
os.kill(fork_server, 9)
"""
    + LEAVE
)


@pytest.mark.requirement("S3.P1.5")
@pytest.mark.parametrize("io_mode", ["pipe", "pty"])
@pytest.mark.parametrize(
    ("argv", "count"),
    [(["sleep", "1000"], 1), (["sleep", "1000"], 20), (["python", "-c", FORK_FOR_EVER], 1)],
    ids=["one", "many", "forking"],
)
async def test_what_a_program_hid_before_it_killed_its_holder_is_ended(
    server: ScriptedServer,
    daemon: DaemonProcess,
    tmp_path: Path,
    io_mode: str,
    argv: list[str],
    count: int,
) -> None:
    await server.connected()
    command, program = _program(tmp_path, argv, then=LEAVE, count=count)
    done = await server.done(await server.begin(argv=command, io_mode=io_mode))
    assert (done.end_reason, done.survivors) == ("lost", [])
    assert NOTE_NOTHING_LEFT in done.notes
    assert _running(program) == []


async def test_a_program_that_kills_holder_and_fork_server_is_ended_as_lost(
    server: ScriptedServer, daemon: DaemonProcess, tmp_path: Path
) -> None:
    await server.connected()
    command, program = _program(tmp_path, ["sleep", "1000"], then=KILL_THE_FORK_SERVER_TOO)
    done = await server.done(await server.begin(argv=command, io_mode="pipe"))
    assert done.end_reason == "lost"
    assert _running(program) == []
    assert (await server.done(await server.begin(argv=["true"], io_mode="pipe"))).exit_code == 0, (
        "the host serves on"
    )


@pytest.mark.parametrize(
    ("notes", "end_reason"), [([], "lost"), (["left_running"], "exited")], ids=["nothing", "names"]
)
async def test_a_forged_end_hides_no_process(
    server: ScriptedServer,
    daemon: DaemonProcess,
    tmp_path: Path,
    notes: list[str],
    end_reason: str,
) -> None:
    await server.connected()
    forged = encode(
        InteractiveCmdDone(session_id="s-0", end_reason="exited", exit_code=0, notes=notes)
    )
    record = daemon.state_dir / "sessions" / "s-0" / "done.json"
    command, program = _program(
        tmp_path, ["sleep", "1000"], then=f"open({str(record)!r}, 'wb').write({forged!r})\n{LEAVE}"
    )
    done = await server.done(await server.begin("s-0", argv=command, io_mode="pipe"))
    try:
        left = [f"[{pid}]" for pid in _running(program)]
        named = [name for name in done.survivors if name.endswith(tuple(left))]
        assert (done.end_reason, len(named)) == (end_reason, len(left))
        assert bool(left) == bool(notes)
    finally:
        for name in done.survivors:
            send_signal(int(name.rpartition("[")[2][:-1]), signal.SIGKILL)


async def test_processes_of_a_holder_killed_without_a_daemon_are_found_and_ended(
    server: ScriptedServer, daemon: DaemonProcess, tmp_path: Path
) -> None:
    await server.connected()
    command, program = _program(tmp_path, ["sleep", "1000"], then="time.sleep(1000)")
    session_id = await server.begin(argv=command, io_mode="pipe")
    (hidden,) = await await_until(lambda: _running(program), SECONDS, "the hidden process")
    (session,) = daemon.sessions()
    await await_until(lambda: hidden in _recorded(daemon), SECONDS, "the holder to write it down")
    await daemon.kill()
    (holder,) = holder_pids(session)
    os.kill(holder, signal.SIGKILL)
    await await_until(lambda: not session.is_holder_alive(), SECONDS, "the holder to die")
    await daemon.start()
    done = await server.done(session_id)
    assert (done.end_reason, done.survivors) == ("lost", [])
    assert NOTE_NOTHING_LEFT not in done.notes, "nobody saw the holder die"
    assert _running(program) == []


def _recorded(daemon: DaemonProcess) -> list[int]:
    records = [session.read_record() for session in daemon.sessions()]
    return [pid for record in records if record is not None for pid, _ in record.members]


async def test_what_another_session_left_running_on_purpose_is_let_alone(
    server: ScriptedServer, daemon: DaemonProcess, tmp_path: Path
) -> None:
    await server.connected()
    command, left = _program(tmp_path, ["sleep", "1000"], then="")
    first = await server.done(await server.begin(argv=command, io_mode="pipe"))
    (pid,) = _running(left)
    try:
        assert (first.end_reason, [name.endswith(f"[{pid}]") for name in first.survivors]) == (
            "exited",
            [True],
        )
        await await_until(
            lambda: not daemon.sessions(), SECONDS, "the first session to be forgotten"
        )
        second = await server.begin(argv=["sleep", "1000"], io_mode="pipe")
        (session,) = await await_until(daemon.sessions, SECONDS, "the second session")
        # Killed before its program runs it would be a start that failed, and no loss.
        await await_until(session.read_pid, SECONDS, "its program")
        (holder,) = holder_pids(session)
        os.kill(holder, signal.SIGKILL)
        assert (await server.done(second)).end_reason == "lost"
        assert is_running(pid)
    finally:
        send_signal(pid, signal.SIGKILL)


async def test_a_holder_says_what_it_uses_itself(
    server: ScriptedServer, daemon: DaemonProcess
) -> None:
    await server.connected()
    session_id = await server.begin(argv=["sleep", "1000"], io_mode="pipe")
    (session,) = await await_until(daemon.sessions, SECONDS, "the session")
    record = await await_until(session.read_record, SECONDS, "what the holder says of itself")
    assert record.memory_bytes > 1 << 20
    assert record.descriptors > 3
    await server.send(TerminateCmd(seq=9, session_id=session_id))
    await server.done(session_id)


async def test_a_fifo_in_a_sessions_directory_holds_no_other_session_up(
    server: ScriptedServer, daemon: DaemonProcess
) -> None:
    await server.connected()
    other = await server.begin(argv=["sleep", "1000"])
    put = (
        "import os; os.mkfifo(os.path.join"
        f"({str(daemon.state_dir)!r}, 'sessions', os.environ['HOLDLINE_SESSION'], 'done.json'));"
        "import time; "
    )
    hostile = await server.begin(argv=[sys.executable, "-c", put + LEAVE])
    assert (await server.done(hostile)).end_reason == "lost"
    await server.send(TerminateCmd(seq=9, session_id=other))
    assert (await server.done(other)).end_reason == "terminated"
