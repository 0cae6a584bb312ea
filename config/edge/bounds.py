"""Limits on the size and the time of any request. Sizes are bytes, times are seconds.

One body may have ``conf.data_upload_max_memory_size``. A request has ``conf.request_seconds`` from
its first byte to the last byte of its body; one that is sent before an earlier one is answered,
from that answer on. A connection without a request is closed after ``conf.idle_seconds``, one whose
peer takes nothing of its answer at the latest after twice that.
"""

import fcntl
import json
import struct
import termios
from collections.abc import Callable
from contextlib import suppress
from typing import Any, Final

from projects.accounts.tokens import ShownToken, shown_token
from projects.conf import conf
from projects.errors.access import Unauthenticated

CLOSE_SECONDS: Final = 5.0
"""A closed connection is aborted after this if its peer does not read what is left to send."""
LINGER_SECONDS: Final = 2.0
LINGER_BYTES: Final = 8 * 1024 * 1024
"""After a refusal, the rest of a body is read and dropped, up to this time and this size. A
connection that is closed with unread bytes is reset, and the peer would never see the reason."""
BACKLOG: Final = 4096
"""Connections that the kernel queues until the server accepts them, at most the kernel's
``net.core.somaxconn``. The kernel drops further ones without a refusal, and their peers retry after
1, 3 and 7 s: with a short queue, a burst of one peer would delay all others that long."""
ALL_BODIES_BYTES: Final = 32 * 1024 * 1024
"""The bodies of all requests that one process holds at the same time."""
TOKEN_BODIES_BYTES: Final = 8 * 1024 * 1024
"""The bodies of those that show one API token. The calls of a token wait for places with their
bodies, and must not take the room of everybody else."""

FREE_CHUNKS: Final = 1024
CHUNK_BYTES: Final = 32
"""A body in chunks may have FREE_CHUNKS of any size, and one more for each so many bytes. Each
chunk is parsed by itself: one read of chunks of one byte would hold up everybody for a while."""

PART_BYTES: Final = 64 * 1024
"""An answer is handed to its connection in parts of this size, each when there is room for it."""

UNREADABLE: Final = 400
TOO_LARGE: Final = 413
TOO_SLOW: Final = 408
TOO_MANY: Final = 503
_PHRASES: Final = {
    UNREADABLE: b"Bad Request",
    TOO_LARGE: b"Content Too Large",
    TOO_SLOW: b"Request Timeout",
    TOO_MANY: b"Service Unavailable",
}


def are_too_many(chunks: int, size: int) -> bool:
    """True if a body of ``size`` bytes so far should have come in fewer chunks."""
    return chunks > FREE_CHUNKS + size // CHUNK_BYTES


class Refused(Exception):
    """A request was refused, and what is left of the bytes that were read is not looked at."""


class HeldBodies:
    """Counts the bodies in memory, and refuses the oldest incomplete ones if they are too much.

    A body that is sent at full speed is complete within moments. The ones that are refused belong
    to senders that hold theirs back. Of one token's bodies, which may wait for an answer once they
    are complete, the next one is refused.
    """

    def __init__(
        self, most: int = ALL_BODIES_BYTES, most_of_token: int = TOKEN_BODIES_BYTES
    ) -> None:
        self._most, self._most_of_token = most, most_of_token
        self._tokens: dict[object, ShownToken] = {}
        self._of_token: dict[ShownToken, int] = {}
        self._sizes: dict[object, int] = {}
        self._incomplete: dict[object, Callable[[], None]] = {}
        self.total = 0

    def grow(
        self, owner: object, size: int, give_way: Callable[[], None], authorization: bytes = b""
    ) -> None:
        """Count ``size`` more bytes that ``owner`` holds, with the token of ``authorization``.

        ``give_way`` has to refuse the owner's request. It is called at most once, perhaps before
        this returns.
        """
        if owner not in self._sizes:
            self._incomplete[owner] = give_way
            with suppress(Unauthenticated):
                self._tokens[owner] = shown_token(authorization.decode("latin-1"))
        self._sizes[owner] = self._sizes.get(owner, 0) + size
        self.total += size
        if token := self._tokens.get(owner):
            self._of_token[token] = self._of_token.get(token, 0) + size
            if self._of_token[token] > self._most_of_token:
                self._refuse(owner)
        while self.total > self._most and self._incomplete:
            self._refuse(next(iter(self._incomplete)))

    def complete(self, owner: object) -> None:
        """Never ask the owner to give way again: its body is complete. It still counts."""
        self._incomplete.pop(owner, None)

    def release(self, owner: object) -> None:
        """Stop counting the owner's body, which is gone. May be called again."""
        self._incomplete.pop(owner, None)
        size = self._sizes.pop(owner, 0)
        self.total -= size
        if token := self._tokens.pop(owner, None):
            self._of_token[token] -= size
            if not self._of_token[token]:
                del self._of_token[token]

    def _refuse(self, owner: object) -> None:
        give_way = self._incomplete[owner]
        self.release(owner)
        give_way()


HELD: Final = HeldBodies()
"""The bodies that this process holds."""


class Untaken:
    """Looks now and then whether the peer of a connection still takes what it is sent.

    The kernel keeps megabytes for it, and says only now and then that it has room for more.
    """

    def __init__(self) -> None:
        self._before = 0

    def is_less(self, connection: Any) -> bool:
        """True if the peer has more to take, and has taken something since the last look."""
        try:
            found = fcntl.ioctl(connection.fileno(), termios.TIOCOUTQ, bytes(4))
        except OSError:
            return False
        before, self._before = self._before, struct.unpack("i", found)[0]
        return self._before not in {0, before}


def refusal_body(status: int) -> bytes:
    """The body of a refusal: JSON with the rule that the request broke."""
    most_bytes = conf.data_upload_max_memory_size
    texts = {
        UNREADABLE: (
            "the body comes in too many small chunks; or the WebSocket handshake has a body, or "
            "headers that are too many or too long"
        ),
        TOO_LARGE: f"the body of the request is larger than {most_bytes} bytes",
        TOO_SLOW: f"the request was not complete within {conf.request_seconds:g} seconds",
        TOO_MANY: "the server holds too many unfinished requests; try again",
    }
    return json.dumps({"error": texts[status]}).encode()


def refusal_bytes(status: int) -> bytes:
    """A complete HTTP/1.1 answer, for a connection that is closed after it."""
    body = refusal_body(status)
    head = (
        b"HTTP/1.1 %d %s\r\nContent-Type: application/json\r\nContent-Length: %d\r\n"
        b"Connection: close\r\n\r\n"
    )
    return head % (status, _PHRASES[status], len(body)) + body
