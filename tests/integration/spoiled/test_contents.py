"""What a program writes into the files of its session stops neither the daemon nor a command."""

import argparse
import asyncio
import json
import sys
from types import SimpleNamespace

import pytest

from controller_client.administration import service
from controller_client.protocol.messages import TerminateCmd
from tests.support.hosts.daemon_process import ROOT, DaemonProcess
from tests.support.hosts.scripted_server import ScriptedServer
from tests.support.waiting import await_until
from tests.unit.controller_client.session_files.test_directory import CONTENTS, NAMES

SECONDS = 90


async def run_command(daemon: DaemonProcess, *words: str) -> str:
    """Run a command of the host on the daemon's state directory, and return what it prints."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "controller_client", *words, "--state-dir", str(daemon.state_dir)),
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
        cwd=ROOT,
    )
    printed = (await process.communicate())[0].decode()
    assert process.returncode == 0, printed
    return printed


@pytest.mark.parametrize("content", CONTENTS.values(), ids=CONTENTS)
async def test_planted_content_stops_no_daemon_and_no_command(
    server: ScriptedServer,
    daemon: DaemonProcess,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    content: bytes,
) -> None:
    hostile, other = [await server.begin(argv=["sleep", "1000"]) for _ in range(2)]
    for session in await await_until(
        lambda: len(daemon.sessions()) == 2 and daemon.sessions(), SECONDS, "the sessions"
    ):
        await await_until(session.read_record, SECONDS, "what its holder writes first")
    await daemon.kill()
    for name in NAMES:
        path = daemon.state_dir / "sessions" / hostile / name
        path.write_bytes(content)
    listed = json.loads(await run_command(daemon, "sessions", "--json"))
    assert sorted(one["session_id"] for one in listed) == sorted([hostile, other])
    place = SimpleNamespace(state_dir=daemon.state_dir)
    monkeypatch.setattr(service, "find", lambda _: place)
    status = await asyncio.to_thread(service.status, argparse.Namespace(json=True))
    assert status == service.NOT_RUNNING
    assert json.loads(capsys.readouterr().out)["daemon"] is None
    assert f"{other}  ended" in await run_command(daemon, "kill", other)
    await daemon.start()
    hello = await server.connected(2)
    assert {summary.session_id for summary in hello.sessions} == {hostile, other}
    assert (await server.done(other, SECONDS)).end_reason == "terminated"
    await server.send(TerminateCmd(seq=9, session_id=hostile))
    assert (await server.done(hostile, SECONDS)).end_reason == "terminated"
    # Nobody else finds the holder, whose lock names none any more.
    await await_until(lambda: not daemon.sessions(), SECONDS, "the holders to be gone")
