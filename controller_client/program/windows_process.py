"""A program on a Windows pseudo-console.

The only importer of pywinpty, which exists on Windows alone.

pywinpty reads the console in a thread of its own and hands the bytes over through a socket, so it
can be waited for and read as any other descriptor is.
"""

from collections.abc import Mapping
from typing import Any, Final

from controller_client.program.child_setup import Launch
from controller_client.program.process import Process
from controller_client.protocol.messages import IoMode, Stream
from controller_client.system.start_failure import StartFailed, from_os_error

_NOTHING: Final = b"0011Ignore"
"""The message of pywinpty through its socket when the console had nothing."""


class WindowsProcess(Process):
    """The leader of a session on a pseudo-console."""

    def __init__(self, child: Any) -> None:
        """Own ``child``, which is a winpty.PtyProcess."""
        self._child = child
        self._socket = child.fileobj
        self._socket.setblocking(False)
        self.pid: int = child.pid
        self.io_mode: IoMode = "pty"
        self.input_fd: int = self._socket.fileno()
        self._outputs: dict[int, Stream] = {self.input_fd: "stdout"}

    @classmethod
    def start(cls, launch: Launch, *, rows: int, cols: int) -> "WindowsProcess":
        """Run ``launch`` on a pseudo-console. Raises StartFailed."""
        try:
            import winpty  # there is none elsewhere
        except ImportError:
            raise StartFailed(
                "START_FAILED", "a terminal on Windows needs the package pywinpty"
            ) from None
        try:
            child = winpty.PtyProcess.spawn(
                list(launch.argv), cwd=launch.cwd, env=dict(launch.env), dimensions=(rows, cols)
            )
        except OSError as error:
            raise from_os_error(error, "cannot open a pseudo-console") from None
        return cls(child)

    @property
    def output_fds(self) -> Mapping[int, Stream]:
        """The socket, until the console is closed."""
        return self._outputs

    def read(self, _descriptor: int, max_bytes: int) -> bytes | None:
        """Return what the console shows now; None for good once the program is gone."""
        try:
            data: bytes = self._socket.recv(max_bytes)
        except BlockingIOError:
            return b""
        except OSError:
            data = b""
        if not data:
            self._outputs = {}
            return None
        return b"" if data == _NOTHING else data

    def write(self, data: bytes) -> int:
        """Type ``data``; the console takes all of it.

        The console takes text, so bytes that are no UTF-8 are replaced.
        """
        try:
            self._child.write(data.decode(errors="replace"))
        except (OSError, EOFError):
            return 0
        return len(data)

    def close_input(self) -> None:
        """Do nothing: a terminal stays open for input as long as its program lives."""

    def resize(self, rows: int, cols: int) -> None:
        """Tell the console its new size."""
        self._child.setwinsize(rows, cols)

    def close(self) -> None:
        """Close the console, and with it what still runs in it."""
        self._outputs = {}
        self._child.close(force=True)
