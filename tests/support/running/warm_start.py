"""Servers that start warm: forked from one process that has imported the libraries already.

Two thirds of what a server costs until it accepts connections are imports of libraries, and tests
start hundreds of servers. Of the product nothing is imported ahead: a server reads its settings,
imports the product and takes its locks by itself, as one that was started by its command does.
Run as a program with the number of a socket's descriptor, this file is the process that the servers
are forked from.
"""

import array
import atexit
import functools
import gc
import importlib
import json
import os
import runpy
import selectors
import socket
import subprocess
import sys
import threading
import weakref
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO, Final

from tests.support.processes import children_of

_LIBRARIES: Final = (
    "OpenSSL",
    "autobahn.websocket.types",
    "channels.routing",
    "channels_redis.pubsub",
    "cryptography.fernet",
    "django.contrib.admin",
    "django.contrib.staticfiles.storage",
    "django.core.handlers.asgi",
    "django.db.backends.sqlite3.base",
    "django.db.migrations",
    "django.views.generic",
    "mcp.server.lowlevel",
    "mcp.types.methods",
    "mcp_types.methods",
    "prometheus_client",
    "psycopg",
    "pyte",
    "redis.asyncio",
    "rich.traceback",
    "service_identity",
    "structlog",
    "uvicorn",
    "whitenoise.middleware",
)
"""What a server imports of others, and what may be imported before the settings are read."""
_MOST_BYTES: Final = 1 << 17
_PROGRAM: Final = "tests.support.running.warm_start"
_END_SECONDS: Final = 90.0
_ONE_STARTER: Final = threading.Lock()
# Names of the variables that an interpreter reads once, when it starts.
_READ_EARLY: Final = ("PYTHON", "LD_", "LANG", "LC_")


class WarmProcess(subprocess.Popen[bytes]):
    """A process of the starter, with the face of one that this process has started itself."""

    def __init__(self, args: Sequence[str], reply: socket.socket) -> None:
        self.args = args
        self.stdin = self.stdout = self.stderr = None
        self.returncode: int | None = None
        self._reply = reply
        self._one_reader = threading.Lock()
        # In a cycle of garbage the socket may be ended before ``__del__`` of this object runs.
        weakref.finalize(self, reply.close)
        self.pid = self._number()

    def _number(self) -> int:
        (number,) = array.array("i", self._reply.recv(4))
        return number

    def poll(self) -> int | None:
        """The exit code, or None while the process runs."""
        return self._ended(0.0)

    def wait(self, timeout: float | None = None) -> int:
        """Wait for the end, and return the exit code."""
        if (code := self._ended(timeout)) is None:
            raise subprocess.TimeoutExpired(self.args, timeout or 0.0)
        return code

    def _ended(self, timeout: float | None) -> int | None:
        if self.returncode is None:
            with selectors.DefaultSelector() as selector:
                selector.register(self._reply, selectors.EVENT_READ)
                is_told = selector.select(timeout)
            # Several threads may wait. What one of them reads ends the waiting of all.
            with self._one_reader:
                if is_told and self.returncode is None:
                    self.returncode = self._number()
        return self.returncode

    def send_signal(self, sig: int) -> None:
        """Send a signal unless the process is over."""
        if self.poll() is None:
            os.kill(self.pid, sig)


@functools.cache
def _starter() -> tuple[subprocess.Popen[bytes], socket.socket]:
    """The process that servers are forked from, and the socket that orders go to."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with theirs:
        process = subprocess.Popen(
            [sys.executable, "-m", _PROGRAM, str(theirs.fileno())],
            cwd=Path(__file__).resolve().parents[3],
            stdin=subprocess.DEVNULL,
            pass_fds=[theirs.fileno()],
        )

    def end() -> None:
        ours.close()
        process.wait(_END_SECONDS)

    atexit.register(end)
    return process, ours


def start(
    command: Sequence[str],
    cwd: Path,
    environment: Mapping[str, str],
    *,
    streams: tuple[IO[bytes] | int, IO[bytes], IO[bytes]],
    is_warm: bool,
) -> subprocess.Popen[bytes]:
    """Start a process with these standard streams, warm if it may be and is the same that way.

    Warm are ``python -m MODULE`` and ``python FILE``, also after ``env NAME=VALUE``.
    """
    assigned, words = _without_env(command)
    if is_warm and words[0] == sys.executable and _is_read_early_the_same(environment):
        with Path(os.devnull).open("rb") as null:
            chosen = [null if isinstance(stream, int) else stream for stream in streams]
            return _start_warm(words[1:], cwd, {**environment, **assigned}, chosen)
    stdin, stdout, stderr = streams
    return subprocess.Popen(
        command, cwd=cwd, env=environment, stdin=stdin, stdout=stdout, stderr=stderr
    )


def _without_env(command: Sequence[str]) -> tuple[dict[str, str], list[str]]:
    """The variables that ``env`` sets before the command, and the command."""
    if command[0] != "env":
        return {}, list(command)
    words = list(command[1:])
    assigned: dict[str, str] = {}
    while "=" in words[0]:
        name, _, value = words.pop(0).partition("=")
        assigned[name] = value
    return assigned, words


def _is_read_early_the_same(environment: Mapping[str, str]) -> bool:
    """True if an interpreter that has started already is like one with this environment.

    Settings other than the usual ones may change what a library takes when it is imported.
    """
    if "DJANGO_SETTINGS_MODULE" in environment or not hasattr(os, "pidfd_open"):
        return False
    return all(
        environment.get(name) == os.environ.get(name)
        for name in {*environment, *os.environ}
        if name.startswith(_READ_EARLY)
    )


def _start_warm(
    arguments: Sequence[str],
    cwd: Path,
    environment: Mapping[str, str],
    streams: Sequence[IO[bytes]],
) -> WarmProcess:
    with _ONE_STARTER:
        _, orders = _starter()
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    order = {"arguments": list(arguments), "cwd": str(cwd), "environment": dict(environment)}
    with theirs:
        descriptors = [theirs.fileno(), *(stream.fileno() for stream in streams)]
        socket.send_fds(orders, [json.dumps(order).encode()], descriptors)
    return WarmProcess(arguments, ours)


def own_processes() -> set[int]:
    """The processes that this one has started, the warm ones among them."""
    started = children_of(os.getpid())
    if not _starter.cache_info().currsize:
        return started
    starter = _starter()[0].pid
    return started - {starter} | children_of(starter)


# ---- in the process that servers are forked from -------------------------------------------------


def _fork_on_orders(orders: socket.socket) -> bytes | None:
    """Serve orders until there can be none any more, and return None.

    In a forked process return its order. Its standard streams are those of the order.
    """
    running: dict[int, tuple[int, socket.socket]] = {}
    selector = selectors.DefaultSelector()
    selector.register(orders, selectors.EVENT_READ)
    while True:
        for key, _ in selector.select():
            if key.fd in running:
                pid, reply = running.pop(key.fd)
                selector.unregister(key.fd)
                os.close(key.fd)
                _tell(reply, os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
                reply.close()
                continue
            order, (*descriptors,), _, _ = socket.recv_fds(orders, _MOST_BYTES, 4)
            if not order:
                return None
            reply = socket.socket(fileno=descriptors.pop(0))
            if pid := os.fork():
                for stream in descriptors:
                    os.close(stream)
                _tell(reply, pid)
                ending = os.pidfd_open(pid)
                running[ending] = pid, reply
                selector.register(ending, selectors.EVENT_READ)
                continue
            for number, stream in enumerate(descriptors):
                os.dup2(stream, number)
            selector.close()
            for other in (orders, reply, *(reply for _, reply in running.values())):
                other.close()
            for descriptor in (*descriptors, *running):
                os.close(descriptor)
            return order


def _tell(reply: socket.socket, number: int) -> None:
    """Send a number to whoever gave the order, unless it is gone."""
    try:
        reply.send(array.array("i", [number]).tobytes())
    except OSError:
        return


def _become(order: bytes) -> None:
    """Go on as the program of the order."""
    wanted = json.loads(order)
    os.chdir(wanted["cwd"])
    os.environ.clear()
    os.environ.update(wanted["environment"])
    program, *sys.argv = wanted["arguments"]
    if program == "-m":
        runpy.run_module(sys.argv[0], run_name="__main__", alter_sys=True)
    else:
        sys.argv.insert(0, program)
        runpy.run_path(program, run_name="__main__")


if __name__ == "__main__":
    for library in _LIBRARIES:
        importlib.import_module(library)
    gc.freeze()
    if (given := _fork_on_orders(socket.socket(fileno=int(sys.argv[1])))) is not None:
        _become(given)
