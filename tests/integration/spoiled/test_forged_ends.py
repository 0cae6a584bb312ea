"""A record of its end that a program wrote hides it from no command of the host."""

import json
import os
import signal
import sys

import pytest

from controller_client.session_files.lock_owner import living_holder
from tests.integration.spoiled.test_contents import run_command
from tests.support.hosts.daemon_process import ROOT, DaemonProcess
from tests.support.hosts.scripted_server import ScriptedServer
from tests.support.processes import is_running, send_signal
from tests.support.waiting import await_until

SECONDS = 90
FORGE = """
import os, signal, sys, time
from pathlib import Path
sys.path.insert(0, {root!r})
from controller_client.protocol.codec import encode
from controller_client.protocol.messages import InteractiveCmdDone
holder, session_id = os.getppid(), os.environ["HOLDLINE_SESSION"]
os.chdir(Path({state!r}, "sessions", session_id))
while not Path("record.json").exists():
    time.sleep(0.01)
done = InteractiveCmdDone(session_id=session_id, end_reason="exited", exit_code=0)
Path("done.json").write_bytes(encode(done))
"""
STOP_FOR_EVER = """
for number in (signal.SIGTERM, signal.SIGHUP):
    signal.signal(number, signal.SIG_IGN)
while True:
    os.kill(holder, signal.SIGSTOP)
"""


async def _is_listed(daemon: DaemonProcess, *, running: bool) -> None:
    (listed,) = json.loads(await run_command(daemon, "sessions", "--json"))
    assert listed["is_running"] is running


@pytest.mark.parametrize(
    "then",
    ["", "os.kill(holder, signal.SIGSTOP)", STOP_FOR_EVER, "Path('holder.lock').unlink()"],
    ids=["goes_on", "stops", "stops_for_ever", "unlocks"],
)
async def test_a_program_that_forged_its_end_is_listed_and_ended(
    server: ScriptedServer, daemon: DaemonProcess, then: str
) -> None:
    source = FORGE.format(root=str(ROOT), state=str(daemon.state_dir)) + then + "\ntime.sleep(1000)"
    await server.begin(argv=[sys.executable, "-c", source], io_mode="pipe")
    (session,) = await await_until(daemon.sessions, SECONDS, "the session")
    await await_until(session.read_done, SECONDS, "the forged end")
    holder = living_holder(session)
    program = session.read_pid()
    assert holder is not None
    assert program is not None
    await daemon.kill()
    try:
        await _is_listed(daemon, running=True)
        assert "  ended" in await run_command(daemon, "kill", "--all")
        assert not is_running(program)
        await _is_listed(daemon, running=False)
    finally:
        for pid in (holder.pid, program):
            send_signal(pid, signal.SIGKILL)


@pytest.mark.parametrize("command", ["read x", "sleep 1000 & read x"], ids=["all", "but_one"])
async def test_an_end_that_waits_for_the_server_is_an_end(
    server: ScriptedServer, daemon: DaemonProcess, command: str
) -> None:
    await server.begin(argv=["/bin/sh", "-c", command], io_mode="pipe")
    (session,) = await await_until(daemon.sessions, SECONDS, "the session")
    program = await await_until(session.read_pid, SECONDS, "its program")
    await await_until(session.read_record, SECONDS, "what its holder writes first")
    await daemon.kill()
    await _is_listed(daemon, running=True)
    os.kill(program, signal.SIGKILL)
    await await_until(session.read_done, SECONDS, "the end")
    await _is_listed(daemon, running=False)
