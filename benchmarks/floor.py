"""A reference without storage, policy or resumption: what two hops and kernel evidence cost here.

``python -m benchmarks.floor PORT`` runs two processes and prints their ids: HTTP to a server, a
WebSocket to a daemon, a PTY to the program. It answers the calls of the product that the benchmarks
make, and it is right only for their programs.
"""

import asyncio
import fcntl
import json
import os
import pty
import selectors
import shlex
import struct
import subprocess
import sys
import termios
import time
import uuid
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

from websockets.asyncio.client import connect
from websockets.asyncio.server import ServerConnection, serve
from websockets.exceptions import ConnectionClosed

_LOOK_SECONDS = 0.0001
_READS_STDIN = "0 0x0 "


class Terminal:
    """A program on a terminal. The kernel tells that it waits.

    It ran since the last input, has read all of it, and sleeps in a read.
    """

    def __init__(self, command: str, tell: Callable[[dict[str, Any]], None]) -> None:
        self._tell = tell
        self._master, self._slave = pty.openpty()
        self.pid = os.fork()
        if self.pid == 0:
            os.login_tty(self._slave)
            words = shlex.split(command)
            os.execvp(words[0], words)
        os.set_blocking(self._master, False)
        self._end_seen = os.pidfd_open(self.pid)
        self._loop = asyncio.get_running_loop()
        self._loop.add_reader(self._master, self._read)
        self._loop.add_reader(self._end_seen, self._end)
        self._output = bytearray()
        self._runs: int | None = None
        self._begin()

    def _begin(self) -> None:
        self._is_told = False
        self._loop.call_later(_LOOK_SECONDS, self._look)

    def type(self, data: bytes) -> None:
        self._runs = self._count_of_runs()
        os.write(self._master, data)
        self._begin()

    def _read(self) -> None:
        """Take all that is printed. A read that finds nothing waited for what was on its way."""
        with suppress(BlockingIOError):
            while True:
                self._output += os.read(self._master, 65536)

    def _look(self) -> None:
        if self._is_told:
            return
        if self._waits():
            self._read()
            self._is_told = True
            self._say(state="awaiting_input")
        else:
            self._loop.call_later(_LOOK_SECONDS, self._look)

    def _waits(self) -> bool:
        # A program whose count is the same in the end slept through all that was asked.
        runs = self._count_of_runs()
        return (
            runs != self._runs
            and Path(f"/proc/{self.pid}/syscall").read_text().startswith(_READS_STDIN)
            and not self._unread()
            and self._count_of_runs() == runs
        )

    def _count_of_runs(self) -> int:
        return int(Path(f"/proc/{self.pid}/schedstat").read_text().split()[2])

    def _unread(self) -> int:
        """The number of typed bytes that the program has not read."""
        return struct.unpack("i", fcntl.ioctl(self._slave, termios.FIONREAD, bytes(4)))[0]

    def _end(self) -> None:
        self._read()
        self._is_told = True
        for descriptor in (self._master, self._end_seen):
            self._loop.remove_reader(descriptor)
        for descriptor in (self._master, self._end_seen, self._slave):
            os.close(descriptor)
        status = os.waitpid(self.pid, 0)[1]
        self._say(state="exited", exit_code=os.waitstatus_to_exitcode(status))

    def _say(self, **fields: Any) -> None:
        self._tell({**fields, "output": self._output.decode(errors="replace")})
        self._output.clear()


async def daemon(port: int) -> None:
    """Start and type what the server says, and tell what programs print and that they wait."""
    terminals: dict[str, Terminal] = {}
    async with connect(f"ws://127.0.0.1:{port}", compression=None) as socket:
        queue: asyncio.Queue[str] = asyncio.Queue()

        async def send() -> None:
            while True:
                await socket.send(await queue.get())

        sending = asyncio.create_task(send())
        async for frame in socket:
            order = json.loads(frame)
            name = order["session_id"]
            if "command" in order:

                def tell(fields: dict[str, Any], name: str = name) -> None:
                    queue.put_nowait(json.dumps({"session_id": name, **fields}))

                terminals[name] = Terminal(order["command"], tell)
            elif order.get("terminate"):
                os.kill(terminals[name].pid, 9)
            else:
                terminals[name].type(order["input_text"].encode())
        sending.cancel()


class Server:
    """Callers on one side, the daemon on the other, and between them one answer for each call."""

    def __init__(self) -> None:
        self._waiting: dict[str, asyncio.Future[dict[str, Any]]] = {}
        self._socket: ServerConnection
        self.is_connected = asyncio.Event()

    async def on_daemon(self, socket: ServerConnection) -> None:
        self._socket = socket
        self.is_connected.set()
        with suppress(ConnectionClosed):
            async for frame in socket:
                told = json.loads(frame)
                waiting = self._waiting.pop(told["session_id"], None)
                if waiting is not None:
                    waiting.set_result(told)

    async def _call(self, tool: str, arguments: dict[str, Any]) -> dict[str, Any]:
        if tool.startswith("list_"):
            return {"sessions": []}
        arguments.setdefault("session_id", uuid.uuid4().hex)
        name = arguments["session_id"]
        waiting = self._waiting[name] = asyncio.get_running_loop().create_future()
        await self._socket.send(json.dumps(arguments))
        return await waiting

    async def on_caller(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while True:
                head = await reader.readuntil(b"\r\n\r\n")
                length = int(head.lower().partition(b"content-length:")[2].split(b"\r\n", 1)[0])
                call = json.loads(await reader.readexactly(length))
                found = await self._call(call["params"]["name"], call["params"]["arguments"])
                result = {"isError": False, "structuredContent": found}
                body = json.dumps({"jsonrpc": "2.0", "id": call["id"], "result": result}).encode()
                writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % len(body) + body)
        except (EOFError, ConnectionError):
            writer.close()


async def server(port: int) -> None:
    """Serve callers at ``port`` and the daemon at the port after it, until it is ended."""
    both = Server()
    callers = await asyncio.start_server(both.on_caller, "127.0.0.1", port, limit=1 << 20)
    async with callers, serve(both.on_daemon, "127.0.0.1", port + 1, compression=None):
        command = [sys.executable, "-m", "benchmarks.floor", str(port + 1), "daemon"]
        process = subprocess.Popen(command)  # noqa: ASYNC220 - nobody is served yet
        await both.is_connected.wait()
        print(json.dumps({"servers": [os.getpid()], "daemon": process.pid}), flush=True)
        try:
            await asyncio.to_thread(sys.stdin.read)
        finally:
            process.terminate()
            process.wait()


def raw_turns(count: int) -> list[float]:
    """Seconds of turns on a bare PTY in this process, by somebody who is told the prompt."""
    pid, master = pty.fork()
    if pid == 0:
        os.execvp("bash", ["bash", "-c", 'while read -p "> " x; do echo "got $x"; done'])
    seconds = []
    for number in range(count + 1):
        began, shown = time.perf_counter(), b""
        if number:
            os.write(master, b"w%d\n" % number)
        while not shown.endswith(b"> "):
            shown += os.read(master, 65536)
        seconds.append(time.perf_counter() - began)
    os.close(master)
    os.waitpid(pid, 0)
    return seconds[1:]


if __name__ == "__main__":
    if len(sys.argv) > 2:
        # The timers of epoll ring at whole milliseconds, those of select in time.
        precise = asyncio.SelectorEventLoop(selectors.SelectSelector())
        precise.run_until_complete(daemon(int(sys.argv[1])))
    else:
        asyncio.run(server(int(sys.argv[1])))
