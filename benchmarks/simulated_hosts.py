"""Simulate many controllers in one process, with the real codec.

Their programs answer each line at once and wait for the next. The controllers reconnect with the
daemon's back-off, and send again all output that was not committed.
``python -m benchmarks.simulated_hosts URL CREDENTIALS_FILE`` prints the monotonic clock at every
WELCOME.
"""

import asyncio
import json
import resource
import sys
import time
from pathlib import Path

import msgspec
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed, InvalidHandshake

from controller_client.protocol import codec
from controller_client.protocol.messages import (
    CommandAck,
    Draining,
    FromServer,
    Hello,
    InputAck,
    InteractiveCmdDone,
    InteractiveOutput,
    Message,
    Ping,
    Pong,
    SendInput,
    SessionSummary,
    Started,
    StartInteractiveCmd,
    StreamFinal,
    StreamPosition,
    TerminalReport,
    TerminateCmd,
    Welcome,
)
from controller_client.server_link.network.backoff import Backoff

PROMPT = b"> "


class Program:
    """``while read -p "> " x; do echo "got $x"; done``, as a terminal shows it."""

    def __init__(self, session_id: str) -> None:
        self.session_id = session_id
        self.shown = bytearray(PROMPT)
        self.input_seq = 0
        self.frames = 0

    def type(self, data: bytes) -> None:
        line = data.rstrip(b"\n")
        self.shown += line + b"\r\ngot " + line + b"\r\n" + PROMPT

    def output_from(self, offset: int) -> InteractiveOutput:
        self.frames += 1
        end = len(self.shown)
        report = TerminalReport(
            state="awaiting_input",
            kind="line",
            evidence="kernel",
            prompt="> ",
            offset=end,
            input_seq=self.input_seq,
        )
        data = bytes(self.shown[offset:])
        return InteractiveOutput(
            session_id=self.session_id,
            stream="stdout",
            offset=offset,
            seq=self.frames,
            data=data,
            terminal=report,
        )


class Host:
    """One simulated controller with its programs."""

    def __init__(self, name: str, credential: str) -> None:
        self.name = name
        self.programs: dict[str, Program] = {}
        self._headers = {"Authorization": f"Bearer {credential}"}
        self._last_command_seq = 0
        self._backoff = Backoff()

    async def run(self, url: str, delay: float) -> None:
        """Connect and serve, again and again, for ever."""
        while True:
            await asyncio.sleep(delay)
            began = time.monotonic()
            try:
                async with connect(
                    url,
                    additional_headers=self._headers,
                    compression=None,
                    ping_interval=None,
                    open_timeout=20,
                ) as socket:
                    await self._serve(socket)
            except (OSError, TimeoutError, ConnectionClosed, InvalidHandshake, EOFError):
                self._backoff.was_connected(time.monotonic() - began)
            delay = self._backoff.next_delay()

    async def _serve(self, socket: ClientConnection) -> None:
        async def send(message: Message) -> None:
            await socket.send(codec.encode(message).decode())

        await send(self._hello())
        beating: asyncio.Task[None] | None = None
        try:
            async for frame in socket:
                message = codec.decode_from_server.decode(frame)
                if isinstance(message, Welcome):
                    print(f"{time.monotonic():.3f}", flush=True)
                    epoch = message.epoch
                    beating = asyncio.create_task(
                        self._beat(send, message.heartbeat_seconds, epoch)
                    )
                for answer in self._answers(message):
                    await send(answer)
        finally:
            if beating is not None:
                beating.cancel()

    async def _beat(self, send, seconds: float, epoch: int) -> None:
        while True:
            await asyncio.sleep(seconds)
            await send(Ping(epoch=epoch))

    def _hello(self) -> Hello:
        sessions = [
            SessionSummary(
                session_id=program.session_id,
                state="running",
                streams=[
                    StreamPosition(stream="stdout", first_offset=0, next_offset=len(program.shown))
                ],
                input_seq=program.input_seq,
                pid=1,
            )
            for program in self.programs.values()
        ]
        return Hello(
            versions=[1],
            client_version="simulated",
            instance_id=self.name,
            boot_id="boot",
            os="linux",
            platform="simulated",
            hostname=self.name,
            capabilities=["pty"],
            last_cmd_seq=self._last_command_seq,
            sessions=sessions,
        )

    def _answers(self, message: FromServer):
        if isinstance(message, Draining):
            self._backoff.was_sent_away()
        if isinstance(message, Ping):
            yield Pong(reply_to=message.id, epoch=message.epoch, echoed=message.echo)
        elif isinstance(message, Welcome):
            for directive in message.sessions:
                program = self.programs.get(directive.session_id)
                expected = {position.stream: position.offset for position in directive.expected}
                if program is not None and expected.get("stdout", len(program.shown)) < len(
                    program.shown
                ):
                    yield self._stamped(program.output_from(expected["stdout"]), message.epoch)
        elif isinstance(message, StartInteractiveCmd):
            self._last_command_seq = message.seq
            program = self.programs.setdefault(message.session_id, Program(message.session_id))
            yield Started(
                session_id=message.session_id, command_seq=message.seq, pid=1, epoch=message.epoch
            )
            yield self._stamped(program.output_from(0), message.epoch)
        elif isinstance(message, SendInput):
            yield from self._typed(message)
        elif isinstance(message, TerminateCmd):
            yield CommandAck(
                session_id=message.session_id, command_seq=message.seq, epoch=message.epoch
            )
            program = self.programs.pop(message.session_id, None)
            if program is not None:
                final = StreamFinal(stream="stdout", next_offset=len(program.shown), sha256="")
                yield InteractiveCmdDone(
                    session_id=message.session_id,
                    end_reason="terminated",
                    signal="SIGTERM",
                    streams=[final],
                    epoch=message.epoch,
                )

    def _typed(self, message: SendInput):
        self._last_command_seq = max(self._last_command_seq, message.seq)
        program = self.programs[message.session_id]
        start = len(program.shown)
        is_new = message.input_seq == program.input_seq + 1
        if is_new:
            program.input_seq = message.input_seq
            program.type(message.data)
        yield InputAck(
            session_id=message.session_id,
            command_seq=message.seq,
            input_seq=message.input_seq,
            accepted_bytes=len(message.data),
            epoch=message.epoch,
        )
        if is_new:
            yield self._stamped(program.output_from(start), message.epoch)

    @staticmethod
    def _stamped(output: InteractiveOutput, epoch: int) -> InteractiveOutput:
        return msgspec.structs.replace(output, epoch=epoch)


async def main(url: str, credentials: dict[str, str]) -> None:
    """Run all controllers, started within a few seconds."""
    hosts = [Host(name, credential) for name, credential in credentials.items()]
    async with asyncio.TaskGroup() as group:
        for number, host in enumerate(hosts):
            group.create_task(host.run(url, number / 200))


if __name__ == "__main__":
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    asyncio.run(main(sys.argv[1], json.loads(Path(sys.argv[2]).read_text())))
