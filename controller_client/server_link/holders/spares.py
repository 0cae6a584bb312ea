"""The daemon's socket to one fork server, and the spare holders that have come through it.

A spare holder is a holder without a session. Its socket is here, so that START reaches it in one
write: neither the fork server nor a connection is in the way. The daemon keeps one spare. When it
gives that away, it asks for the next (``~``), and it asks at once (``+``) if it has none.
"""

import asyncio
import os
import socket
from collections import defaultdict, deque
from contextlib import suppress
from itertools import chain
from typing import Final, NamedTuple

from controller_client.server_link.holders.client import error_named

SPAWN_SECONDS: Final = 60.0
"""A holder that has not come up after this time never will.

On a host with a load of 16 for its two processors, a first holder took more than 15 seconds.
"""
MOST_FORKS: Final = 4
"""A start fails if so many holders in a row died before they could get it."""
_RECEIVE_BYTES: Final = 64 * 1024


class SpareHolder(NamedTuple):
    """A holder that waits for START at the other end of ``connection``."""

    pid: int
    connection: socket.socket

    def is_gone(self) -> bool:
        """Return whether the spare has ended; it says nothing before START."""
        with suppress(BlockingIOError):
            try:
                return not self.connection.recv(1, socket.MSG_PEEK | socket.MSG_DONTWAIT)
            except ConnectionError:
                return True
        return False


class ForkServerLink:
    """The conversation with one fork server, from its start to its end.

    ``connection`` becomes this object's own.
    """

    def __init__(self, connection: socket.socket) -> None:
        connection.setblocking(False)
        self._socket = connection
        self._loop = asyncio.get_running_loop()
        self._received = b""
        # Sockets whose line has not come yet.
        self._arrived: deque[socket.socket] = deque()
        self._spares: deque[SpareHolder] = deque()
        self._starts: deque[asyncio.Future[SpareHolder]] = deque()
        # Who waits for the answers to each question, in the order in which it was asked.
        self._questions: defaultdict[str, deque[asyncio.Future[str]]] = defaultdict(deque)
        self._loop.add_reader(connection, self._on_readable)

    async def give(self, session_id: str) -> SpareHolder:
        """Return the holder of a new session, which waits for START. Raises OSError."""
        spare = await self._living()
        next_spare = "" if self._spares else "~\n"
        # Before START: the fork server has to know whose holder it is when the holder dies.
        try:
            self._tell(f"{spare.pid} {session_id}\n{next_spare}")
        except OSError:
            spare.connection.close()
            raise
        return spare

    async def ask(self, question: str, seconds: float, details: str = "") -> str:
        """Return the answer to a question, which is one word. Raises OSError."""
        self._tell(f"{question} {details}\n" if details else f"{question}\n")
        answer = self._loop.create_future()
        # One that is given up stays in its place: its answer is still to come.
        self._questions[question].append(answer)
        return await asyncio.wait_for(answer, seconds)

    def close(self) -> None:
        """End the conversation: the fork server ends, and the spares with it."""
        if self._socket.fileno() >= 0:
            self._loop.remove_reader(self._socket)
            self._socket.close()
        while self._spares:
            self._spares.popleft().connection.close()
        while (start := self._next_start()) is not None:
            start.set_exception(error_named("ECONNRESET"))
        for answer in chain.from_iterable(self._questions.values()):
            if not answer.done():
                answer.set_exception(error_named("ECONNRESET"))
        self._questions.clear()

    async def _living(self) -> SpareHolder:
        """Return a spare that is alive: one that was forked just now can be dead, too."""
        for _ in range(MOST_FORKS):
            spare = self._take() or await self._fork()
            if not spare.is_gone():
                return spare
            spare.connection.close()
        raise error_named("ECONNRESET")

    def _take(self) -> SpareHolder | None:
        while self._spares:
            spare = self._spares.popleft()
            if not spare.is_gone():
                return spare
            spare.connection.close()
        return None

    async def _fork(self) -> SpareHolder:
        forked = self._loop.create_future()
        self._starts.append(forked)
        self._tell("+\n")
        return await asyncio.wait_for(forked, SPAWN_SECONDS)

    def _tell(self, lines: str) -> None:
        # A fork server that reads nothing lets this fail, long before it could be sent in part.
        self._socket.send(lines.encode())

    def _on_readable(self) -> None:
        try:
            data, descriptors, _, _ = socket.recv_fds(self._socket, _RECEIVE_BYTES, 1)
        except BlockingIOError:
            return
        except OSError:
            data, descriptors = b"", []
        if not data:
            self.close()
            return
        *lines, self._received = (self._received + data).split(b"\n")
        for descriptor in descriptors:
            os.set_inheritable(descriptor, False)
            self._arrived.append(socket.socket(fileno=descriptor))
        for line in lines:
            asked, _, outcome = line.decode("ascii", "replace").partition(" ")
            if asked != "+":
                self._on_answer(asked, outcome.strip())
            elif outcome.isdigit():
                # The kernel drops a socket for which this process has no descriptor left.
                self._on_forked(
                    SpareHolder(int(outcome), self._arrived.popleft())
                    if self._arrived
                    else error_named("EMFILE")
                )
            else:
                self._on_forked(error_named(outcome))

    def _on_answer(self, question: str, outcome: str) -> None:
        waiting = self._questions.get(question)
        if not waiting:
            return
        answer = waiting.popleft()
        if not waiting:
            del self._questions[question]
        if not answer.done():
            answer.set_result(outcome)

    def _on_forked(self, outcome: SpareHolder | OSError) -> None:
        start = self._next_start()
        if isinstance(outcome, OSError):
            if start is not None:
                start.set_exception(outcome)
        elif start is not None:
            start.set_result(outcome)
        else:
            self._spares.append(outcome)

    def _next_start(self) -> asyncio.Future[SpareHolder] | None:
        while self._starts:
            start = self._starts.popleft()
            if not start.done():
                return start
        return None
