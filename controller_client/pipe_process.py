"""A program on pipes: standard output and standard error apart, and an input that can be closed.

It leads a session of its own without a terminal, so what it starts is found and ended as on a terminal.
"""

import fcntl
import os
from collections.abc import Mapping
from contextlib import suppress
from typing import Final, NoReturn

from controller_client.child_setup import Launch, become_program, explain
from controller_client.process import Process
from controller_client.protocol.messages import IoMode, Stream
from controller_client.start_failure import from_os_error

PIPE_BYTES: Final = 256 * 1024
"""Room in each output pipe where the kernel grants it: a program that writes much is stopped less often."""
_F_SETPIPE_SZ: Final = getattr(fcntl, "F_SETPIPE_SZ", None)


class PipeProcess(Process):
    """The leader of a session on pipes."""

    def __init__(self, pid: int, input_fd: int, outputs: Mapping[int, Stream]) -> None:
        self.pid = pid
        self.io_mode: IoMode = "pipe"
        self.input_fd = input_fd
        self._outputs = dict(outputs)
        for descriptor in (input_fd, *outputs):
            if descriptor >= 0:
                os.set_blocking(descriptor, False)

    @classmethod
    def start(cls, launch: Launch, *, has_input: bool) -> "PipeProcess":
        """Run ``launch``; without input its standard input is empty. Raises StartFailed before anything runs."""
        pipes: list[tuple[int, int]] = []
        try:
            # One by one, so that those there are can be closed if there is no next one.
            pipes.extend(os.pipe() for _ in range(4 if has_input else 3))
            pid = os.fork()
        except OSError as error:
            _close(*(descriptor for pipe in pipes for descriptor in pipe))
            raise from_os_error(error, "cannot start a process") from None
        report, stdout, stderr = pipes[:3]
        stdin = pipes[3] if has_input else None
        if pid == 0:
            _be_program(launch, (stdin[0] if stdin else -1, stdout[1], stderr[1]), report[1])
        _close(stdout[1], stderr[1], report[1], *stdin[:1] if stdin else ())
        refusal = _read_to_end(report[0])
        if refusal:
            _close(stdout[0], stderr[0], *stdin[1:] if stdin else ())
            os.waitpid(pid, 0)
            raise explain(refusal, launch)
        for output in (stdout[0], stderr[0]):
            _widen(output)
        return cls(pid, stdin[1] if stdin else -1, {stdout[0]: "stdout", stderr[0]: "stderr"})

    @property
    def output_fds(self) -> Mapping[int, Stream]:
        """The read ends of the pipes that somebody still has open for writing."""
        return self._outputs

    def read(self, descriptor: int, max_bytes: int) -> bytes | None:
        """What is in the pipe; None, and the pipe is closed, once nobody can write to it."""
        try:
            data = os.read(descriptor, max_bytes)
        except BlockingIOError:
            return b""
        except OSError:
            data = b""
        if data:
            return data
        del self._outputs[descriptor]
        os.close(descriptor)
        return None

    def write(self, data: bytes) -> int:
        """Put into the pipe what fits; a pipe that nobody reads any more is closed."""
        try:
            return os.write(self.input_fd, data) if self.input_fd >= 0 else 0
        except BlockingIOError:
            return 0
        except OSError:
            self.close_input()
            return 0

    def close_input(self) -> None:
        """The program reads what is in the pipe, and then the end."""
        if self.input_fd >= 0:
            os.close(self.input_fd)
            self.input_fd = -1

    def resize(self, rows: int, cols: int) -> None:
        """Pipes have no size."""

    def close(self) -> None:
        """Let go of every pipe; who writes to one after that gets SIGPIPE."""
        self.close_input()
        _close(*self._outputs)
        self._outputs = {}


def _be_program(launch: Launch, standard: tuple[int, int, int], report: int) -> NoReturn:
    """The child's half. Nothing it does may reach the parent's code, so it ends here whatever happens."""
    try:
        os.setsid()
        stdin, stdout, stderr = standard
        if stdin < 0:
            stdin = os.open(os.devnull, os.O_RDONLY)
        for target, descriptor in enumerate((stdin, stdout, stderr)):
            os.dup2(descriptor, target)
        become_program(launch)
    except BaseException as error:  # noqa: BLE001 (reported to the parent, which raises it)
        with suppress(OSError):
            os.write(report, str(error).encode(errors="replace")[:256])
    finally:
        os._exit(127)


def _read_to_end(descriptor: int) -> str:
    """What the child has to say before its exec closes the pipe; nothing if all went well."""
    parts = []
    while part := os.read(descriptor, 512):
        parts.append(part)
    os.close(descriptor)
    return b"".join(parts).decode(errors="replace")


def _widen(descriptor: int) -> None:
    if _F_SETPIPE_SZ is not None:
        with suppress(OSError):
            fcntl.fcntl(descriptor, _F_SETPIPE_SZ, PIPE_BYTES)


def _close(*descriptors: int) -> None:
    for descriptor in descriptors:
        os.close(descriptor)
