"""Sessions of the real daemon and its holders, under a scripted server: starts, kills and ends."""

import asyncio
import os
import signal
from pathlib import Path
from uuid import uuid4

import pytest

from controller_client.protocol.messages import (
    CommandAck,
    Draining,
    InputAck,
    InteractiveOutput,
    Ping,
    Pong,
    Resize,
    SendInput,
    SessionFound,
    Started,
    StartInteractiveCmd,
    TerminateCmd,
)
from tests.support.hosts.daemon_process import DaemonProcess, holder_pids
from tests.support.hosts.scripted_server import ScriptedServer, Transcript
from tests.support.waiting import await_until

SECONDS = 60.0


async def _advances(transcript: Transcript) -> None:
    seen = len(transcript.data)
    await await_until(lambda: len(transcript.data) > seen + 500, SECONDS, "some output")


async def test_a_session_runs_from_start_to_done_and_is_forgotten(
    server: ScriptedServer, daemon: DaemonProcess
) -> None:
    session_id = await server.begin(command="read -p 'Name: ' n; echo hello $n; exit 7")
    await await_until(
        lambda: "awaiting_input" in server.transcript(session_id).states, SECONDS, "the prompt"
    )
    await server.send(SendInput(seq=2, session_id=session_id, input_seq=1, data=b"world\n"))
    done, transcript = await server.done(session_id), server.transcript(session_id)
    assert (done.end_reason, done.exit_code) == ("exited", 7)
    assert b"hello world" in transcript.data
    assert done.streams[0].sha256 == transcript.sha256
    ack = await server.wait_for(InputAck)
    assert (ack.command_seq, ack.failure) == (2, None)
    await await_until(
        lambda: not daemon.sessions(), SECONDS, "the session's directory to be removed"
    )


async def test_a_repeated_start_runs_the_program_once_and_is_answered_again(
    server: ScriptedServer,
    daemon: DaemonProcess,
    tmp_path: Path,
) -> None:
    spawn_log = tmp_path / "spawned"
    session_id = str(uuid4())
    transcript = server.transcript(session_id)
    for seq in (1, 1, 1):
        await server.send(
            StartInteractiveCmd(
                seq=seq, session_id=session_id, command=f"echo $$ >> {spawn_log}; read x"
            )
        )
    await await_until(lambda: transcript.started and spawn_log.exists(), SECONDS, "STARTED")
    await server.send(
        StartInteractiveCmd(seq=9, session_id=session_id, command=f"echo $$ >> {spawn_log}")
    )
    again = await server.wait_for(Started, lambda started: started.command_seq == 9)
    assert again.pid == transcript.started[0].pid
    await server.send(TerminateCmd(seq=10, session_id=session_id))
    await server.done(session_id)
    await server.send(
        StartInteractiveCmd(seq=1, session_id=session_id, command=f"echo $$ >> {spawn_log}")
    )
    await server.send(Ping(id="after"))
    await server.wait_for(Pong, lambda pong: pong.reply_to == "after")
    assert len(spawn_log.read_text().split()) == 1


async def test_impossible_starts_are_refused_with_the_reason(
    server: ScriptedServer, daemon: DaemonProcess
) -> None:
    late = await server.begin(command="true", ttl_seconds=0)
    missing = await server.begin(command="no-such-program-at-all")
    await server.send(StartInteractiveCmd(seq=3, session_id="../../escape", command="true"))
    for session_id, code in (
        (late, "EXPIRED"),
        (missing, "PROGRAM_NOT_FOUND"),
        ("../../escape", "START_FAILED"),
    ):
        started = await server.wait_for(
            Started, lambda message, wanted=session_id: message.session_id == wanted
        )
        assert started.failure is not None
        assert started.failure.code == code
        assert started.pid is None


async def test_commands_for_a_session_the_host_does_not_know_are_refused(
    server: ScriptedServer, daemon: DaemonProcess
) -> None:
    session_id = str(uuid4())
    await server.send(SendInput(seq=1, session_id=session_id, input_seq=1, data=b"x"))
    await server.send(TerminateCmd(seq=2, session_id=session_id))
    await server.send(Resize(seq=3, session_id=session_id, rows=1, cols=1))
    refused = [await server.wait_for(InputAck)]
    refusals = [
        await server.wait_for(CommandAck, lambda ack, seq=seq: ack.command_seq == seq)
        for seq in (2, 3)
    ]
    assert {ack.failure.code for ack in [*refused, *refusals] if ack.failure} == {
        "SESSION_NOT_FOUND"
    }


@pytest.mark.fault
async def test_a_daemon_killed_while_a_program_prints_loses_nothing(
    server: ScriptedServer, daemon: DaemonProcess, tmp_path: Path
) -> None:
    spawn_log = tmp_path / "spawned"
    session_id = await server.begin(
        command=f"echo x >> {spawn_log}; i=0; while [ $i -lt 3000 ]; do i=$((i+1)); "
        "echo line $i; sleep 0.001; done"
    )
    transcript = server.transcript(session_id)
    for kill in range(1, 4):
        await _advances(transcript)
        await daemon.kill()
        await daemon.start()
        await server.connected(kill + 1)
    done = await server.done(session_id)
    assert transcript.gaps == []
    assert bytes(transcript.data) == b"".join(b"line %d\r\n" % number for number in range(1, 3001))
    assert done.streams[0].sha256 == transcript.sha256
    assert spawn_log.read_text().count("x") == 1


@pytest.mark.fault
async def test_a_server_that_vanishes_and_returns_gets_the_rest(
    server: ScriptedServer, daemon: DaemonProcess
) -> None:
    session_id = await server.begin(
        command="i=0; while [ $i -lt 2000 ]; do i=$((i+1)); echo line $i; sleep 0.001; done"
    )
    for count in (2, 3):
        await _advances(server.transcript(session_id))
        await server.stop()
        await server.start()
        await server.connected(count)
    done, transcript = await server.done(session_id), server.transcript(session_id)
    assert bytes(transcript.data) == b"".join(b"line %d\r\n" % number for number in range(1, 2001))
    assert done.streams[0].sha256 == transcript.sha256
    assert transcript.gaps == []


async def test_inputs_of_an_earlier_connection_are_not_applied_twice(
    server: ScriptedServer, daemon: DaemonProcess
) -> None:
    session_id = await server.begin(command="cat")
    typed = SendInput(seq=2, session_id=session_id, input_seq=1, data=b"once\n")
    await server.send(typed)
    await server.wait_for(InputAck)
    await daemon.kill()
    await daemon.start()
    await server.connected(2)
    await server.send(typed)
    await server.send(SendInput(seq=3, session_id=session_id, input_seq=2, eof=True))
    await server.done(session_id)
    transcript = server.transcript(session_id)
    assert bytes(transcript.data) == b"once\r\nonce\r\n"  # the echo, and cat


async def test_a_stopped_daemon_says_so_and_leaves_the_program_running(
    server: ScriptedServer, daemon: DaemonProcess
) -> None:
    session_id = await server.begin(command="read x; echo got $x")
    await await_until(
        lambda: "awaiting_input" in server.transcript(session_id).states, SECONDS, "the prompt"
    )
    assert await daemon.terminate() == 0
    await server.wait_for(Draining)
    await daemon.start()
    hello = await server.connected(2)
    assert [(summary.session_id, summary.state) for summary in hello.sessions] == [
        (session_id, "running")
    ]
    await server.send(SendInput(seq=2, session_id=session_id, input_seq=1, data=b"it\n"))
    await server.shows(session_id, b"got it")
    assert (await server.done(session_id)).exit_code == 0


async def test_a_killed_holder_is_reported_as_lost_and_its_program_is_gone(
    server: ScriptedServer, daemon: DaemonProcess
) -> None:
    session_id = await server.begin(command="trap '' HUP; echo ready; while :; do sleep 1; done")
    await server.shows(session_id, b"ready")
    (session,) = daemon.sessions()
    program = session.read_pid()
    assert program is not None
    (holder,) = holder_pids(session)
    os.kill(holder, signal.SIGKILL)
    done = await server.done(session_id)
    assert (done.end_reason, done.survivors) == ("lost", [])
    await await_until(
        lambda: not Path(f"/proc/{program}").exists(), SECONDS, "the program to be gone"
    )
    await await_until(
        lambda: not daemon.sessions(), SECONDS, "the session's directory to be removed"
    )


async def test_an_end_recorded_by_a_dead_holder_is_reported_after_a_gap(
    server: ScriptedServer, daemon: DaemonProcess
) -> None:
    session_id = await server.begin(command="read x; echo said too late")
    await await_until(
        lambda: "awaiting_input" in server.transcript(session_id).states, SECONDS, "the prompt"
    )
    server.acknowledges_done = False
    server.on_output = lambda message: server.cut() if b"late" in message.data else None
    await server.send(SendInput(seq=2, session_id=session_id, input_seq=1, data=b"\n"))
    (session,) = daemon.sessions()
    await await_until(session.read_done, SECONDS, "the recorded end")
    await daemon.kill()
    transcript = server.transcript(session_id)
    transcript.receiver.expected = (
        len(transcript.data) - 5
    )  # as if the server had died with its last commit
    os.kill(holder_pids(session)[0], signal.SIGKILL)
    server.acknowledges_done = True
    await daemon.start()
    hello = await server.connected(len(server.hellos) + 1)
    assert [summary.state for summary in hello.sessions if summary.session_id == session_id] == [
        "done"
    ]
    await await_until(lambda: transcript.gaps, SECONDS, "the gap")
    assert transcript.gaps == [(len(transcript.data) - 5, len(transcript.data), "lost")]
    assert (await server.done(session_id)).exit_code == 0


async def test_a_stopped_holder_does_not_delay_the_connection_and_resumes_later(
    server: ScriptedServer,
    daemon: DaemonProcess,
) -> None:
    session_id = await server.begin(command="read x; echo got $x")
    await await_until(
        lambda: "awaiting_input" in server.transcript(session_id).states, SECONDS, "the prompt"
    )
    (holder,) = holder_pids(daemon.sessions()[0])
    os.kill(holder, signal.SIGSTOP)
    server.cut()
    hello = await server.connected(2)
    assert [(summary.session_id, summary.state) for summary in hello.sessions] == [
        (session_id, "running")
    ]
    await server.send(SendInput(seq=2, session_id=session_id, input_seq=1, data=b"it\n"))
    os.kill(holder, signal.SIGCONT)
    done, transcript = await server.done(session_id), server.transcript(session_id)
    assert b"got it" in transcript.data
    assert done.exit_code == 0


async def test_session_found_comes_before_any_answer_of_the_holder(
    server: ScriptedServer, daemon: DaemonProcess
) -> None:
    session_id = await server.begin(command="read x; echo got $x; read y; echo got $y")
    await await_until(
        lambda: "awaiting_input" in server.transcript(session_id).states, SECONDS, "the prompt"
    )
    await server.send(SendInput(seq=2, session_id=session_id, input_seq=1, data=b"one\n"))
    await server.shows(session_id, b"got one")
    (holder,) = holder_pids(daemon.sessions()[0])
    os.kill(holder, signal.SIGSTOP)
    try:
        server.awaits_silent = True
        server.cut()
        await server.connected(2)
        before = len(server.received)
    finally:
        os.kill(holder, signal.SIGCONT)
    await await_until(
        lambda: any(isinstance(m, InputAck) for m in server.received[before:]),
        SECONDS,
        "the answer that is repeated",
    )
    about = [
        message
        for message in server.received[before:]
        if getattr(message, "session_id", "") == session_id
    ]
    assert isinstance(about[0], SessionFound)
    assert (about[0].input_seq, sum(isinstance(message, SessionFound) for message in about)) == (
        1,
        1,
    )
    await server.send(SendInput(seq=3, session_id=session_id, input_seq=2, data=b"two\n"))
    await server.done(session_id)
    transcript = server.transcript(session_id)
    assert b"got two" in transcript.data


async def test_a_session_the_server_forgot_is_ended_and_removed(
    server: ScriptedServer, daemon: DaemonProcess
) -> None:
    session_id = await server.begin(command="while :; do echo noise; sleep 0.01; done")
    await server.shows(session_id, b"noise")
    del server.transcripts[session_id]
    server.cut()
    await await_until(lambda: not daemon.sessions(), SECONDS, "the session to be gone")
    assert session_id not in server.transcripts or not server.transcripts[session_id].done


async def test_a_session_terminated_by_the_server_delivers_all_its_output(
    server: ScriptedServer, daemon: DaemonProcess
) -> None:
    session_id = await server.begin(command="echo begun; read x")
    await server.shows(session_id, b"begun")
    server.actions[session_id] = "terminate"
    server.cut()
    done, transcript = await server.done(session_id), server.transcript(session_id)
    assert done.end_reason == "terminated"
    assert done.streams[0].sha256 == transcript.sha256


async def test_control_never_waits_behind_output_nobody_acknowledges(
    server: ScriptedServer, daemon: DaemonProcess
) -> None:
    server.acknowledges = False
    noisy = await server.begin(command="yes")
    await await_until(
        lambda: len(server.transcript(noisy).data) >= 256 * 1024,
        SECONDS,
        "the session's window to be full",
    )
    quiet = await server.begin(command="read x")
    await server.send(Ping(id="probe"))
    await server.wait_for(Pong, lambda pong: pong.reply_to == "probe")
    await server.wait_for(Started, lambda started: started.session_id == quiet)
    server.acknowledges = True
    await server.send(TerminateCmd(seq=3, session_id=noisy))
    await server.wait_for(CommandAck, lambda ack: ack.command_seq == 3)
    server.cut()
    done, transcript = await server.done(noisy), server.transcript(noisy)
    assert done.end_reason == "terminated"
    assert not transcript.gaps or transcript.gaps[0][2] == "ring_overflow"


async def test_many_sessions_run_at_once(server: ScriptedServer, daemon: DaemonProcess) -> None:
    started = [await server.begin(command=f"echo number {number}") for number in range(12)]
    ends = await asyncio.gather(*(server.done(session_id) for session_id in started))
    assert {done.exit_code for done in ends} == {0}
    for number, session_id in enumerate(started):
        assert bytes(server.transcript(session_id).data) == b"number %d\r\n" % number


async def test_neither_input_nor_output_is_logged(
    server: ScriptedServer, daemon: DaemonProcess
) -> None:
    session_id = await server.begin(command="read -s x; echo $x | tr a-z A-Z")
    await await_until(
        lambda: "awaiting_input" in server.transcript(session_id).states, SECONDS, "the prompt"
    )
    await server.send(SendInput(seq=2, session_id=session_id, input_seq=1, data=b"hunter\n"))
    await server.done(session_id)
    assert any(
        isinstance(message, InteractiveOutput) and b"HUNTER" in message.data
        for message in server.received
    )
    assert await daemon.terminate() == 0
    assert "hunter" not in daemon.log.lower()
