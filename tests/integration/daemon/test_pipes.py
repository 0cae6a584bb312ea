"""Programs on pipes under the real daemon: no result and no byte of either stream is lost."""

import hashlib
import sys
from pathlib import Path
from uuid import uuid4

from controller_client.protocol.messages import (
    CommandResult,
    InputAck,
    ResourceLimits,
    RunCommand,
    SendInput,
    Started,
    StartInteractiveCmd,
)
from tests.support.hosts.daemon_process import DaemonProcess, daemon_process
from tests.support.hosts.scripted_server import ScriptedServer, Transcript
from tests.support.waiting import await_until

SECONDS = 60.0


async def _ended(transcript: Transcript) -> None:
    await await_until(lambda: transcript.done, SECONDS, "the end")


def _assert_whole(transcript: Transcript) -> None:
    digests = {final.stream: final.sha256 for final in transcript.done[0].streams}
    assert transcript.gaps == []
    assert digests == {
        "stdout": transcript.sha256,
        "stderr": hashlib.sha256(transcript.stderr).hexdigest(),
    }


async def test_a_one_shot_runs_once_to_its_result_and_is_forgotten(
    server: ScriptedServer, daemon: DaemonProcess, tmp_path: Path
) -> None:
    session_id, spawn_log = str(uuid4()), tmp_path / "spawned"
    transcript = server.transcript(session_id)
    run = RunCommand(
        seq=1,
        session_id=session_id,
        command=f"echo $$ >> {spawn_log}; cat; echo bad >&2; exit 3",
        input=b"given\n",
    )
    for _ in range(3):
        await server.send(run)
    await _ended(transcript)
    result = transcript.done[0]
    assert isinstance(result, CommandResult)
    assert (
        result.exit_code,
        result.timed_out,
        bytes(transcript.data),
        bytes(transcript.stderr),
    ) == (3, False, b"given\n", b"bad\n")
    assert transcript.started[0].io_mode == "pipe"
    assert len(spawn_log.read_text().split()) == 1
    _assert_whole(transcript)
    await await_until(
        lambda: not daemon.sessions(), SECONDS, "the session's directory to be removed"
    )


async def test_a_killed_daemon_loses_nothing_of_either_stream(
    server: ScriptedServer, daemon: DaemonProcess
) -> None:
    session_id = str(uuid4())
    transcript = server.transcript(session_id)
    lines = (
        "import sys\nfor n in range(60000):\n    print(n)\n"
        "    print(-n, file=sys.stderr) if n % 3 == 0 else None"
    )
    await server.send(
        StartInteractiveCmd(
            seq=1,
            session_id=session_id,
            argv=[sys.executable, "-c", lines],
            io_mode="pipe",
            lifetime_seconds=100,
        )
    )
    for count in (2, 3):
        await await_until(lambda: transcript.started, SECONDS, "STARTED")
        await daemon.kill()
        await daemon.start()
        await server.connected(count)
    await _ended(transcript)
    assert bytes(transcript.data) == b"".join(b"%d\n" % number for number in range(60000))
    assert bytes(transcript.stderr) == b"".join(b"%d\n" % -number for number in range(0, 60000, 3))
    _assert_whole(transcript)


async def test_a_one_shot_whose_end_was_not_acknowledged_ends_again_as_a_result(
    server: ScriptedServer, daemon: DaemonProcess
) -> None:
    session_id = str(uuid4())
    transcript = server.transcript(session_id)
    server.acknowledges_done = False
    await server.send(RunCommand(seq=1, session_id=session_id, command="echo once"))
    await _ended(transcript)
    await daemon.kill()
    server.acknowledges_done = True
    await daemon.start()
    await await_until(lambda: len(transcript.done) >= 2, SECONDS, "the second result")
    assert [type(done) for done in transcript.done] == [CommandResult, CommandResult]
    assert transcript.data == b"once\n"


async def test_an_expired_one_shot_or_missing_program_is_refused_before_it_runs(
    server: ScriptedServer,
    daemon: DaemonProcess,
) -> None:
    late, missing = str(uuid4()), str(uuid4())
    await server.send(RunCommand(seq=1, session_id=late, command="true", ttl_seconds=0))
    await server.send(RunCommand(seq=2, session_id=missing, command="no-such-program-here"))
    for session_id, code in ((late, "EXPIRED"), (missing, "PROGRAM_NOT_FOUND")):
        started = await server.wait_for(
            Started, lambda message, wanted=session_id: message.session_id == wanted
        )
        assert started.failure is not None
        assert (started.failure.code, started.io_mode) == (code, "pipe")


async def test_input_is_written_to_the_pipe_and_acknowledged(
    server: ScriptedServer, daemon: DaemonProcess
) -> None:
    session_id = str(uuid4())
    transcript = server.transcript(session_id)
    await server.send(
        StartInteractiveCmd(seq=1, session_id=session_id, command="cat", io_mode="pipe")
    )
    await server.send(SendInput(seq=2, session_id=session_id, input_seq=1, data=b"data\n"))
    await await_until(lambda: transcript.data == b"data\n", SECONDS, "the echo")
    await server.send(SendInput(seq=3, session_id=session_id, input_seq=2, eof=True))
    await _ended(transcript)
    assert (await server.wait_for(InputAck, lambda ack: ack.input_seq == 1)).accepted_bytes == 5
    assert transcript.done[0].exit_code == 0


async def test_the_hosts_limits_hold_whatever_the_server_asks_for(
    tmp_path: Path, server: ScriptedServer
) -> None:
    async with daemon_process(
        tmp_path, server.url, "--max-open-files", "40", "--max-file-size", "1"
    ) as daemon:
        await server.connected()
        session_id = str(uuid4())
        transcript = server.transcript(session_id)
        limits = ResourceLimits(open_files=5000, file_size_bytes=2048)
        await server.send(
            RunCommand(seq=1, session_id=session_id, command="ulimit -n; ulimit -f", limits=limits)
        )
        await _ended(transcript)
        assert bytes(transcript.data).split() == [b"40", b"2"]
        assert daemon.log
