"""A program to start, as its caller asked for it.

The value goes unchanged from the service to the transaction that writes it down:
``arguments.check_launch`` checks its form, ``command_rules`` judges it, and
``sessions.transactions.start`` makes the session's row and its START message of it.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from controller_client.protocol.messages import IoMode, StdinMode
from projects.models import CommandSession


@dataclass(frozen=True, kw_only=True, slots=True)
class Launch:
    """One program to start.

    ``controller``: the name or id of the host; None if the project has only one.
    ``cwd`` None: the home directory of the user that programs run as.
    ``pipe_fallback``: use pipes, with a warning, on a host that has no terminal to give.
    ``stdin_text`` is written to the program first; with ``stdin`` closed its end follows.
    ``lifetime_seconds`` and ``limit`` (active sessions of this ``kind`` in the project): None
    for what the project says. The project also caps the lifetime of an interactive session.
    ``retained_bytes`` are kept of each stream, newest first; None for what the settings say.
    """

    kind: CommandSession.Kind
    command: str
    controller: str | None = None
    cwd: str | None = None
    env: Mapping[str, str] = field(default_factory=dict)
    io_mode: IoMode = "pipe"
    pipe_fallback: bool = False
    rows: int = 24
    cols: int = 120
    stdin: StdinMode = "open"
    stdin_text: str = ""
    lifetime_seconds: float | None = None
    limit: int | None = None
    retained_bytes: int | None = None

    @property
    def stdin_data(self) -> bytes:
        """``stdin_text`` as the program reads it."""
        return self.stdin_text.encode()
