"""A holder that outlived its daemon's upgrade: new actions are refused, the others work."""

import asyncio
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import msgspec
import pytest

from controller_client.protocol.messages import (
    CommandAck,
    InputAck,
    PauseLifetime,
    Resize,
    SendInput,
    StartInteractiveCmd,
)
from controller_client.protocol.values import NOTE_NOTHING_LEFT
from controller_client.session_files.directory import (
    SOCKET_NAME,
    SessionDirectory,
    create,
    directory_of,
)
from controller_client.session_files.framing import Unpacker, pack
from tests.support.hosts.daemon_process import DaemonProcess
from tests.support.hosts.scripted_server import ScriptedServer, scripted_server
from tests.support.waiting import await_until

SECONDS = 90.0
SESSION = "from-before"
KNOWN = {
    "HOLDER_ATTACH",
    "HOLDER_DETACH",
    "ACK",
    "DONE_ACK",
    "SEND_INPUT",
    "TERMINATE_CMD",
    "RESIZE",
    "ERROR",
}
"""What a holder of before there were capabilities understands; it hangs up at anything else."""


class OlderHolder:
    """Speaks what was spoken then, field by field: no capabilities, no lifetime.

    Its program says what is typed.
    """

    def __init__(self, directory: SessionDirectory) -> None:
        self._directory = directory
        self.received: list[dict[str, Any]] = []
        self.typed = b""
        self._writers: list[asyncio.StreamWriter] = []

    @asynccontextmanager
    async def running(self) -> AsyncIterator["OlderHolder"]:
        lock = self._directory.lock()
        assert lock is not None
        server = await asyncio.start_unix_server(self._serve, self._directory.path / SOCKET_NAME)
        try:
            yield self
        finally:
            server.close()
            for writer in self._writers:
                writer.close()
            os.close(lock)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._writers.append(writer)
        stands = {"stream": "stdout", "first_offset": 0, "next_offset": len(self.typed)}
        self._say(
            writer,
            "HOLDER_HELLO",
            summary={
                "session_id": SESSION,
                "state": "running",
                "streams": [stands],
                "input_seq": 0,
            },
        )
        unpacker = Unpacker()
        while data := await reader.read(65536):
            for frame in unpacker.feed(data):
                self._take(writer, msgspec.json.decode(frame))

    def _take(self, writer: asyncio.StreamWriter, message: dict[str, Any]) -> None:
        self.received.append(message)
        kind = message["type"]
        if kind not in KNOWN:
            writer.close()
        elif kind == "HOLDER_ATTACH":
            self._say(writer, "STARTED", command_seq=1, io_mode="pty", pid=1)
        elif kind == "RESIZE":
            self._say(writer, "COMMAND_ACK", command_seq=message["seq"])
        elif kind == "SEND_INPUT":
            refused = message.get("refused")
            self._say(
                writer,
                "INPUT_ACK",
                command_seq=message["seq"],
                input_seq=message["input_seq"],
                failure=refused,
            )
            if refused is None:
                given = message.get("secret") or message.get("data") or ""
                self._say(
                    writer,
                    "INTERACTIVE_OUTPUT",
                    seq=message["seq"],
                    stream="stdout",
                    offset=len(self.typed),
                    data=given,
                )
                self.typed += msgspec.json.decode(f'"{given}"'.encode(), type=bytes)

    @staticmethod
    def _say(writer: asyncio.StreamWriter, kind: str, **fields: Any) -> None:
        session = {} if kind == "HOLDER_HELLO" else {"session_id": SESSION}
        writer.write(
            pack(
                msgspec.json.encode(
                    {
                        "type": kind,
                        **session,
                        **fields,
                        "v": 1,
                        "id": os.urandom(8).hex(),
                        "epoch": 0,
                    }
                )
            )
        )


@pytest.fixture
async def server() -> AsyncIterator[ScriptedServer]:
    async with scripted_server() as running:
        running.transcript(SESSION)
        yield running


@pytest.fixture
async def daemon(server: ScriptedServer, tmp_path: Path) -> AsyncIterator[DaemonProcess]:
    daemon = DaemonProcess(tmp_path, server.url)
    daemon.state_dir.mkdir(mode=0o700)
    assert create(
        daemon.state_dir,
        StartInteractiveCmd(seq=1, session_id=SESSION, command="cat", lifetime_seconds=3600),
    )
    yield daemon
    await daemon.clean_up()


async def _answer(server: ScriptedServer, seq: int, **fields: Any) -> InputAck:
    await server.send(SendInput(seq=seq, session_id=SESSION, input_seq=seq, **fields))
    return await server.wait_for(InputAck, lambda ack: ack.input_seq == seq, SECONDS)


async def test_an_older_holder_gets_everything_but_secrets(
    server: ScriptedServer, daemon: DaemonProcess
) -> None:
    async with OlderHolder(directory_of(daemon.state_dir, SESSION)).running() as holder:
        await daemon.start()
        hello = await server.connected()
        assert [
            (summary.session_id, summary.state, summary.lifetime) for summary in hello.sessions
        ] == [(SESSION, "running", None)]
        terms: list[dict[str, Any]] = [
            {},
            {"secret_programs": ["cat"]},
            {"secret_programs": ["cat"], "may_echo": True},
        ]
        for seq, more in enumerate(terms, 1):
            refused = (await _answer(server, seq, secret=b"hunter2", **more)).failure
            assert refused is not None
            assert (refused.code, "start the program again" in refused.message) == (
                "HOST_TOO_OLD",
                True,
            )
        # An input without a secret needs no proof of its reader, so it is typed as before.
        assert (await _answer(server, 4, secret=b"shown\n", may_echo=True)).failure is None
        assert (await _answer(server, 5, data=b"plain\n")).failure is None
        await server.send(PauseLifetime(seq=6, session_id=SESSION, is_paused=True, max_seconds=60))
        pause = await server.wait_for(CommandAck, lambda ack: ack.command_seq == 6, SECONDS)
        assert pause.failure is not None
        assert (pause.failure.code, pause.lifetime) == ("HOLDER_TOO_OLD", None)
        await server.send(Resize(seq=7, session_id=SESSION, rows=30, cols=100))
        assert (
            await server.wait_for(CommandAck, lambda ack: ack.command_seq == 7, SECONDS)
        ).failure is None
        assert {message["type"] for message in holder.received} <= KNOWN
        assert holder.typed == b"shown\nplain\n"
        transcript = server.transcript(SESSION)
        await await_until(
            lambda: bytes(transcript.data) == b"shown\nplain\n", SECONDS, "its output"
        )
        assert "broke the protocol" not in daemon.log


async def test_an_older_holder_s_leftovers_are_not_reported_as_none(
    server: ScriptedServer, daemon: DaemonProcess
) -> None:
    async with OlderHolder(directory_of(daemon.state_dir, SESSION)).running():
        await daemon.start()
        await server.connected()
        assert (await _answer(server, 1, data=b"plain\n")).failure is None
    transcript = server.transcript(SESSION)
    await await_until(lambda: transcript.done, SECONDS, "INTERACTIVE_CMD_DONE")
    done = transcript.done[0]
    assert (done.end_reason, done.survivors) == ("lost", [])
    assert NOTE_NOTHING_LEFT not in done.notes, "it wrote nothing down, and its death was not seen"
