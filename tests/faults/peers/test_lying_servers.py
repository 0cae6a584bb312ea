"""A server that lies to a real daemon cannot change the host's policy, files or sessions."""

import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from controller_client.protocol.codec import encode
from controller_client.protocol.limits import MAX_FRAME_BYTES
from controller_client.protocol.messages import (
    Ack,
    Admission,
    DeleteFile,
    DoneAck,
    FileChunk,
    FileDeleted,
    HolderAttach,
    InputAck,
    ProjectRules,
    ReadFile,
    ResourceLimits,
    RunCommand,
    SendInput,
    Started,
    StartInteractiveCmd,
    StreamOffset,
    TerminateCmd,
)
from tests.support.hosts.daemon_process import DaemonProcess, daemon_process, holder_pids
from tests.support.hosts.scripted_server import ScriptedServer, scripted_server
from tests.support.processes import resident_bytes
from tests.support.waiting import await_until

pytestmark = pytest.mark.fault

SECONDS = 90.0
_MIB = 1024 * 1024


@pytest.fixture
async def server() -> AsyncIterator[ScriptedServer]:
    async with scripted_server() as running:
        yield running


@pytest.fixture
async def host(tmp_path: Path, server: ScriptedServer) -> AsyncIterator[DaemonProcess]:
    """A daemon whose policy allows cat and sleep in one directory."""
    (tmp_path / "state").mkdir(mode=0o700)
    (tmp_path / "work").mkdir()
    policy = tmp_path / "state/policy.toml"
    policy.write_text(
        f'[commands]\nallowed = ["cat", "sleep"]\n[directories]\nallowed = ["{tmp_path}/work"]\n'
    )
    policy.chmod(0o600)
    async with daemon_process(tmp_path, server.url) as running:
        await server.connected()
        yield running


async def _started(server: ScriptedServer, start: StartInteractiveCmd | RunCommand) -> Started:
    server.transcript(start.session_id)
    await server.send(start)
    return await server.wait_for(
        Started, lambda message: message.session_id == start.session_id, SECONDS
    )


async def _victim(server: ScriptedServer, host: DaemonProcess) -> str:
    """A program that waits for a line."""
    start = StartInteractiveCmd(
        seq=1, session_id=str(uuid4()), argv=["cat"], cwd=str(host.state_dir.parent / "work")
    )
    assert (await _started(server, start)).failure is None
    return start.session_id


async def _is_alive(server: ScriptedServer, session_id: str, number: int) -> None:
    said = f"line {number}\n".encode()
    await server.send(
        SendInput(seq=100 + number, session_id=session_id, input_seq=number, data=said)
    )
    transcript = server.transcript(session_id)
    await await_until(
        lambda: transcript.data.count(said.rstrip()) == 2, SECONDS, "the program to answer"
    )


async def test_no_forged_request_gets_around_the_hosts_policy(
    server: ScriptedServer,
    host: DaemonProcess,
) -> None:
    victim = await _victim(server, host)
    work = str(host.state_dir.parent / "work")
    forged = Admission(program="/usr/bin/id", roots=[], takes_lines=False)
    asked: list[dict[str, Any]] = [
        {"argv": ["id"]},
        {
            "argv": ["id"],
            "admission": forged,
            "rules": ProjectRules(commands=["*"], directories=None),
        },
        {"argv": ["/bin/bash", "-c", "id"]},
        {"argv": ["cat", "/etc/hostname"], "cwd": "/"},
        {"argv": ["cat", "/etc/hostname"], "cwd": f"{work}/../.."},
        {"command": "cat /etc/hostname; id"},
        {"command": "cat $(id)"},
        {"argv": ["cat"], "env": {"LD_PRELOAD": "/tmp/x.so"}},
        {"argv": ["../../usr/bin/id"]},
        {"argv": ["cat\0id"]},
        {"argv": []},
        {"argv": ["id"], "limits": ResourceLimits(processes=10**9)},
        {"argv": ["cat"], "rows": 10**8},
        {"argv": ["cat"], "cols": 0},
        {"argv": ["cat"], "ring_bytes": 10**15},
        {"argv": ["cat"], "ring_bytes": -5},
        {"argv": ["cat"], "env": {"LANGUAGE": "../../../tmp/x"}},
    ]
    starts = [
        StartInteractiveCmd(seq=10 + number, session_id=str(uuid4()), **{"cwd": work, **fields})
        for number, fields in enumerate(asked)
    ]
    for start in starts:
        assert (await _started(server, start)).failure is not None, start
        assert not server.transcript(start.session_id).data
    for session_id in ("../../../tmp/x", "", "a/b", ".", "x" * 5000):
        await server.send(
            StartInteractiveCmd(seq=50, session_id=session_id, argv=["cat"], cwd=work)
        )
    for path in ("/etc/shadow", "/proc/self/environ", str(host.credential_file)):
        question = ReadFile(path=path)
        await server.send(question)
        answer = await server.wait_for(
            FileChunk, lambda message, question=question: message.reply_to == question.id, SECONDS
        )
        assert answer.failure is not None
        assert (answer.failure.code, answer.data) == ("PATH_NOT_ALLOWED", b"")
        order = DeleteFile(path=path, identity="1:1:1")
        await server.send(order)
        deleted = await server.wait_for(
            FileDeleted, lambda message, order=order: message.reply_to == order.id, SECONDS
        )
        assert deleted.failure is not None
    assert host.credential_file.exists()
    # Those that were refused inside their own directory stay until their refusal is acknowledged;
    # no other was ever made.
    made = {session.session_id for session in host.sessions()}
    assert {victim} <= made <= {victim, *(start.session_id for start in starts)}
    await _is_alive(server, victim, 1)


def _broken(session_id: str) -> list[str | bytes]:
    good = json.loads(encode(SendInput(seq=5, session_id=session_id, input_seq=1, data=b"x")))
    window = HolderAttach(session_id=session_id, window_bytes=2**40, offsets=[])
    return [
        "[" * 100_000,
        json.dumps({**good, "input_seq": 2**70}),
        "x" * (2 * MAX_FRAME_BYTES),
        encode(window).decode(),
    ]


@pytest.mark.timeout(200)
async def test_broken_frames_end_the_connection_and_no_session(
    server: ScriptedServer, host: DaemonProcess
) -> None:
    victim = await _victim(server, host)
    holders = [pid for session in host.sessions() for pid in holder_pids(session)]
    for number, frame in enumerate(_broken(victim), start=1):
        await server.send_raw(frame)
        # The host reconnects, each time after a longer delay.
        await server.connected(number + 1, SECONDS)
        await _is_alive(server, victim, number)
    ahead = [StreamOffset(session_id=victim, stream="stdout", offset=2**62)]
    for message in (
        DoneAck(session_ids=[victim, "../.."]),
        TerminateCmd(seq=90, session_id=str(uuid4())),
        Ack(offsets=ahead),
    ):
        await server.send(message)
    # Whatever the server claimed to have, the next connection asks it again.
    connections = len(server.hellos)
    server.cut()
    await server.connected(connections + 1, SECONDS)
    await _is_alive(server, victim, len(_broken(victim)) + 1)
    assert [pid for session in host.sessions() for pid in holder_pids(session)] == holders


async def test_a_flood_of_commands_costs_no_memory(
    server: ScriptedServer, host: DaemonProcess
) -> None:
    victim = await _victim(server, host)
    base = resident_bytes(host.pid)
    for number in range(3000):
        await server.send(
            SendInput(seq=number, session_id=str(uuid4()), input_seq=1, data=b"x" * 1000)
        )
        await server.send(TerminateCmd(seq=number, session_id=str(uuid4())))
    await _is_alive(server, victim, 1)
    assert resident_bytes(host.pid) - base < 48 * _MIB


async def test_a_server_cannot_override_the_kill_switch(
    server: ScriptedServer, host: DaemonProcess
) -> None:
    victim = await _victim(server, host)
    await _is_alive(server, victim, 1)
    switch = host.state_dir / "stop"
    switch.touch()
    work = str(host.state_dir.parent / "work")
    refused = await _started(
        server, StartInteractiveCmd(seq=3, session_id=str(uuid4()), argv=["cat"], cwd=work)
    )
    assert refused.failure is not None
    assert refused.failure.code == "HOST_STOPPED"
    await server.send(SendInput(seq=4, session_id=victim, input_seq=2, data=b"more\n"))
    ack = await server.wait_for(InputAck, lambda message: message.input_seq == 2, SECONDS)
    assert ack.failure is not None
    assert ack.failure.code == "HOST_STOPPED"
    switch.unlink()
    await server.send(SendInput(seq=6, session_id=victim, input_seq=3, data=b"more\n"))
    ack = await server.wait_for(InputAck, lambda message: message.input_seq == 3, SECONDS)
    assert ack.failure is not None, "a program may have removed it"
    await server.send(TerminateCmd(seq=5, session_id=victim))
    await await_until(lambda: server.transcript(victim).done, SECONDS, "the end of the program")
