"""A program on its own pseudo-terminal. The only importer of pexpect.

pexpect forks the program and owns the terminal; reading and writing go straight to the descriptor,
without blocking, because ``pexpect.send`` sleeps and blocks, and ``pexpect.expect`` guesses when to
stop.
"""

import errno
import os
import pty
from collections.abc import Mapping
from typing import Any, Final

import pexpect

from controller_client.program.child_setup import Launch, become_program, explain
from controller_client.program.closed_terminal import ClosedTerminal
from controller_client.program.process import Process
from controller_client.protocol.messages import IoMode, Stream
from controller_client.system.start_failure import StartFailed, from_os_error, program_not_found


class NoTerminal(StartFailed):
    """There is no terminal to be had; the program may still run without one."""


# pexpect asks whether this process's own user may execute its command. That is the wrong user where
# the program gets another one, and the exec that counts is ours.
_STAND_IN: Final = "/bin/sh"
# Its type depends on an encoding we do not use, and knows nothing of what is overridden here.
_PexpectSpawn: Any = pexpect.spawn


class _Spawn(_PexpectSpawn):
    """A spawn that keeps open the descriptors that ``preexec_fn`` needs.

    pexpect itself would have closed them by then. All of them are closed on exec.
    """

    def __init__(
        self, kept: list[int], terminal: ClosedTerminal | None, *arguments: Any, **more: Any
    ) -> None:
        self._kept = kept
        self._terminal = terminal
        super().__init__(*arguments, **more)

    def _spawnpty(self, args: list[str], **more: Any) -> Any:
        # pexpect offers no way to give it a terminal: it takes what pty.fork returns.
        usual = pty.fork
        if self._terminal is not None:
            pty.fork = self._terminal.fork
        try:
            return super()._spawnpty(args, pass_fds=self._kept, **more)
        finally:
            pty.fork = usual


class PtyProcess(Process):
    """The leader of a session on a PTY of its own."""

    def __init__(self, child: Any, terminal: ClosedTerminal | None = None) -> None:
        """Own ``child``, a pexpect.spawn. Its type depends on an encoding that is not used here."""
        self._child = child
        self._terminal = terminal
        self.pid: int = child.pid
        self.io_mode: IoMode = "pty"
        self.input_fd: int = child.child_fd
        self._outputs: dict[int, Stream] = {self.input_fd: "stdout"}
        os.set_blocking(self.input_fd, False)

    @classmethod
    def start(cls, launch: Launch, *, rows: int, cols: int) -> "PtyProcess":
        """Run ``launch``. Raises StartFailed before anything runs."""
        terminal = ClosedTerminal() if launch.closes_terminal else None
        try:
            # Our own exec at the end of preexec_fn, instead of pexpect's, keeps argv[0] as it was
            # given; the error channel is pexpect's.
            child = _Spawn(
                [
                    descriptor
                    for descriptor in (launch.cwd_fd, launch.group_fd)
                    if descriptor is not None
                ],
                terminal,
                _STAND_IN,
                list(launch.argv),
                timeout=None,
                env=dict(launch.env),
                preexec_fn=lambda: become_program(launch),
                dimensions=(rows, cols),
                echo=True,
                encoding=None,
            )
        except ChildProcessError as error:
            raise explain(str(error), launch) from None
        except (pexpect.ExceptionPexpect, FileNotFoundError):
            raise program_not_found(launch.argv[0]) from None
        except OSError as error:
            raise _no_terminal(error) from None
        return cls(child, terminal)

    @property
    def output_fds(self) -> Mapping[int, Stream]:
        """The PTY's master, until it is closed."""
        return self._outputs

    def read(self, descriptor: int, max_bytes: int) -> bytes | None:
        """Return what the terminal shows now; None while no process has it open."""
        try:
            return os.read(descriptor, max_bytes) or None
        except BlockingIOError:
            return b""
        except OSError:
            # Linux says EIO where others say end of file.
            return None

    def write(self, data: bytes) -> int:
        """Type ``data``; the caller types again what the kernel has no room for."""
        try:
            return os.write(self.input_fd, data) if self.input_fd >= 0 else 0
        except OSError:
            return 0

    def close_input(self) -> None:
        """Do nothing: a terminal stays open for input as long as its program lives."""

    def resize(self, rows: int, cols: int) -> None:
        """Set the size; the kernel sends SIGWINCH to the foreground process group."""
        if self.input_fd >= 0:
            self._child.setwinsize(rows, cols)

    def is_out_of_reach(self) -> bool:
        """Return whether the name of the terminal has been closed from the start on."""
        return self._terminal is not None and self._terminal.is_closed()

    def close(self) -> None:
        """Hang up, but not through pexpect.

        pexpect would wait for the program and kill it; the end of the program is decided elsewhere.
        """
        self._outputs = {}
        # The number of the descriptor may soon be that of another one.
        self.input_fd = -1
        if self._terminal is not None:
            self._terminal.close()
        terminal = self._child.ptyproc
        if not terminal.closed:
            terminal.closed = True
            terminal.fileobj.close()
            self._child.closed = True


def _no_terminal(error: OSError) -> NoTerminal:
    """Make the failure of a start that got no process or no terminal.

    When Python falls back to other ways of getting a terminal, its error does not say why there is
    none. So the kernel is asked again.
    """
    if error.errno is None:
        error = _why_no_terminal()
    failure = from_os_error(error, "cannot open a terminal").failure
    return NoTerminal(failure.code, failure.message, error.errno)


def _why_no_terminal() -> OSError:
    try:
        descriptors = os.openpty()
    except OSError as error:
        return error
    for descriptor in descriptors:
        os.close(descriptor)
    return OSError(errno.EAGAIN, os.strerror(errno.EAGAIN))
