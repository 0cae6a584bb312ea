"""A program on pipes: standard output and standard error apart, and an input that can be closed.

It leads a session of its own without a terminal, so what it starts is found and ended as on a
terminal.
"""

import fcntl
import os
import subprocess
from collections.abc import Mapping
from contextlib import suppress
from typing import Final

from controller_client.program.child_setup import Launch, explain, prepare
from controller_client.program.process import Process
from controller_client.protocol.messages import IoMode, Stream
from controller_client.system.absence import is_shortage
from controller_client.system.start_failure import StartFailed, from_os_error
from controller_client.system.users.two_users import program_ids

PIPE_BYTES: Final = 256 * 1024
"""Room in each output pipe where the kernel grants it: a program that writes much is stopped less
often.
"""
_F_SETPIPE_SZ: Final = getattr(fcntl, "F_SETPIPE_SZ", None)


class PipeProcess(Process):
    """The leader of a session on pipes."""

    def __init__(
        self, child: "subprocess.Popen[bytes]", input_fd: int, outputs: Mapping[int, Stream]
    ) -> None:
        # Kept, and never asked how it ended: that is decided elsewhere.
        self._child = child
        self.pid = child.pid
        self.io_mode: IoMode = "pipe"
        self.input_fd = input_fd
        self._outputs = dict(outputs)
        for descriptor in (input_fd, *outputs):
            if descriptor >= 0:
                os.set_blocking(descriptor, False)

    @classmethod
    def start(cls, launch: Launch, *, has_input: bool) -> "PipeProcess":
        """Run ``launch``; its standard input is empty unless it ``has_input``.

        Raises StartFailed before anything runs.
        """
        pipes: list[tuple[int, int]] = []
        try:
            # One by one, so that the first pipes can be closed if there is no other one.
            pipes.extend(os.pipe() for _ in range(3 if has_input else 2))
            (stdout, its_stdout), (stderr, its_stderr), *inputs = pipes
            its_stdin, stdin = inputs[0] if has_input else (subprocess.DEVNULL, -1)
            child = _run(launch, (its_stdin, its_stdout, its_stderr))
        except (OSError, StartFailed) as error:
            _close(*(descriptor for pipe in pipes for descriptor in pipe))
            raise (
                error
                if isinstance(error, StartFailed)
                else from_os_error(error, "cannot start a process")
            ) from None
        _close(its_stdout, its_stderr, *(pipe[0] for pipe in inputs))
        for output in (stdout, stderr):
            _widen(output)
        return cls(child, stdin, {stdout: "stdout", stderr: "stderr"})

    @property
    def output_fds(self) -> Mapping[int, Stream]:
        """The read ends of the pipes that somebody still has open for writing."""
        return self._outputs

    def read(self, descriptor: int, max_bytes: int) -> bytes | None:
        """Return what is in the pipe; close it and return None once nobody can write to it."""
        try:
            data = os.read(descriptor, max_bytes)
        except BlockingIOError:
            return b""
        except OSError as error:
            if is_shortage(error):
                return b""
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
        except OSError as error:
            # For want of memory the kernel takes nothing now; the program still reads.
            if not is_shortage(error):
                self.close_input()
            return 0

    def close_input(self) -> None:
        """Close the pipe: the program reads what is in it, and then the end."""
        if self.input_fd >= 0:
            os.close(self.input_fd)
            self.input_fd = -1

    def resize(self, rows: int, cols: int) -> None:
        """Do nothing: pipes have no size."""

    def close(self) -> None:
        """Close every pipe; a program that writes to one after that gets SIGPIPE."""
        self.close_input()
        _close(*self._outputs)
        self._outputs = {}


def _run(launch: Launch, standard: tuple[int, int, int]) -> "subprocess.Popen[bytes]":
    """Start the program; fork, which copies memory, only if ``prepare`` has something to do.

    Raises StartFailed or OSError.
    """
    said, say = os.pipe()
    stdin, stdout, stderr = standard
    user, group = program_ids()

    def preparation() -> None:
        try:
            prepare(launch)
        except ChildProcessError as error:
            os.write(say, str(error).encode())
            raise

    try:
        return subprocess.Popen(
            launch.argv,
            executable=launch.program,
            env=launch.env,
            cwd=launch.cwd if launch.is_plain else None,
            stdin=stdin,
            stdout=stdout,
            stderr=stderr,
            start_new_session=True,
            umask=0o022,
            user=user,
            group=group,
            preexec_fn=None if launch.is_plain else preparation,  # noqa: PLW1509 (a holder has no threads)
        )
    except OSError as error:
        if error.filename is None:
            raise
        raise explain(
            f"{'exec' if error.filename == launch.program else 'chdir'} {error.errno}", launch
        ) from None
    except subprocess.SubprocessError:
        raise explain(os.read(said, 512).decode(errors="replace"), launch) from None
    finally:
        _close(said, say)


def _widen(descriptor: int) -> None:
    if _F_SETPIPE_SZ is not None:
        with suppress(OSError):
            fcntl.fcntl(descriptor, _F_SETPIPE_SZ, PIPE_BYTES)


def _close(*descriptors: int) -> None:
    for descriptor in descriptors:
        os.close(descriptor)
