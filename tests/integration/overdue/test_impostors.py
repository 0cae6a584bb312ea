"""A program that answers the daemon in its holder's place."""

import sys
from pathlib import Path

import pytest

from controller_client.protocol.messages import TerminateCmd
from tests.support.hosts.daemon_process import DaemonProcess
from tests.support.hosts.scripted_server import ScriptedServer
from tests.support.processes import is_running
from tests.support.waiting import await_until

SECONDS = 60.0
ROOT = Path(__file__).resolve().parents[3]
IMPOSTOR = """
import os, sys
from pathlib import Path
sys.path.insert(0, {root!r})
from controller_client.holder.link import HolderLink, listen
from controller_client.protocol.messages import (
    HolderHello, InteractiveCmdDone, InteractiveOutput
)
from controller_client.protocol.values import SessionSummary, StreamPosition
session_id = os.environ["HOLDLINE_SESSION"]
os.chdir(Path({state!r}, "sessions", session_id))
print("real", flush=True)
listener = listen("holder.sock")
listener.setblocking(True)
Path({told!r}).write_text(str(os.getpid()))
while True:
    link = HolderLink(listener.accept()[0])
    link.send(HolderHello(summary=SessionSummary(
        session_id=session_id,
        state="running",
        streams=[StreamPosition(stream="stdout", first_offset=0, next_offset=11)],
        input_seq=0,
    )))
    link.send(InteractiveOutput(
        session_id=session_id, stream="stdout", offset=5, seq=2, data=b"forged"
    ))
    link.send(InteractiveCmdDone(session_id=session_id, end_reason="exited", exit_code=0))
    link.flush()
    Path({asked!r}).touch()
"""


@pytest.mark.parametrize("is_daemon_new", [False, True])
async def test_a_program_in_its_holders_place_is_not_believed(
    server: ScriptedServer, daemon: DaemonProcess, tmp_path: Path, *, is_daemon_new: bool
) -> None:
    told, asked = tmp_path / "told", tmp_path / "asked"
    source = IMPOSTOR.format(
        root=str(ROOT), state=str(daemon.state_dir), told=str(told), asked=str(asked)
    )
    session_id = await server.begin(argv=[sys.executable, "-c", source], io_mode="pipe")
    await server.shows(session_id, b"real\n")
    await await_until(told.exists, SECONDS, "the program to take its holder's place")
    if is_daemon_new:
        await daemon.kill()
        await daemon.start()
    else:
        server.cut()
    await server.connected(2)
    await await_until(asked.exists, SECONDS, "the daemon to ask the program")
    await server.send(TerminateCmd(seq=9, session_id=session_id, grace_seconds=0.1))
    done = await server.done(session_id, 2 * SECONDS)
    assert (done.end_reason, done.survivors) == ("terminated", [])
    assert bytes(server.transcript(session_id).data) == b"real\n"
    assert not is_running(int(told.read_text()))
