"""The interface between a session and its program, for terminals and pipes alike."""

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
        """Descriptors to read from; empty once nothing can come any more."""
        ...

    def read(self, descriptor: int, max_bytes: int) -> bytes | None:
        """Return at most ``max_bytes`` of what is there now; empty if there is nothing yet.

        None if nobody has the other end. A terminal can be opened again by a program that let go of
        it, so None is not for ever while the program lives. A pipe cannot: its descriptor is gone
        from ``output_fds`` then.
        """
        ...

    def write(self, data: bytes) -> int:
        """Write ``data`` and return how many bytes the kernel took.

        0 if the kernel has no room, or nobody can read the bytes any more.
        """
        ...

    def close_input(self) -> None:
        """Have the program read the end of its input. On a terminal the end is typed instead."""
        ...

    def resize(self, rows: int, cols: int) -> None:
        """Tell the program the new size of its terminal, if it has one."""
        ...

    def is_out_of_reach(self) -> bool:
        """Return whether no other program of its user can have opened its terminal by name.

        False as well where that is not known.
        """
        return False

    def close(self) -> None:
        """Close every descriptor; a PTY hangs up on what still runs on it."""
        ...
