"""What a session needs of the program it runs, whatever connects the two: a terminal or pipes."""

from collections.abc import Mapping
from typing import Protocol

from controller_client.protocol.messages import IoMode, Stream


class Process(Protocol):
    """A running program and our ends of its streams. Every descriptor is non-blocking."""

    pid: int
    io_mode: IoMode
    input_fd: int
    """-1 once its input is closed."""

    @property
    def output_fds(self) -> Mapping[int, Stream]:
        """Descriptors to read from; none is left once nothing can come any more."""
        ...

    def read(self, descriptor: int, max_bytes: int) -> bytes | None:
        """What is there now: at most ``max_bytes``, empty if there is nothing yet, None if nobody has the other end.

        A terminal can be opened again by a program that let go of it, so None is not for ever while the program lives. A pipe cannot:
        its descriptor is gone from ``output_fds`` then.
        """
        ...

    def write(self, data: bytes) -> int:
        """How many bytes the kernel took; 0 if it has no room, or nobody can read them any more."""
        ...

    def close_input(self) -> None:
        """The program reads the end of its input. A terminal has no such thing: there it is typed."""
        ...

    def resize(self, rows: int, cols: int) -> None:
        """Tell the program the new size of its terminal, if it has one."""
        ...

    def close(self) -> None:
        """Let go of every descriptor; a PTY hangs up on what still runs on it."""
        ...
