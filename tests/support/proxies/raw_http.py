"""A peer that sends bytes no client would send, and records the answer until the end."""

import socket
import time
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass

_BLOCK_BYTES = 65536


@dataclass(frozen=True)
class Reply:
    """The bytes received, and the number of bytes sent. ``is_closed``: the other end closed."""

    data: bytes
    is_closed: bool
    sent_bytes: int = 0

    @property
    def statuses(self) -> list[int]:
        """The statuses of the answers in their order, interim answers included."""
        return [
            int(part.split(b" ", 2)[1])
            for part in self.data.split(b"HTTP/1.1")[1:]
            for part in (b"HTTP/1.1" + part,)
        ]


def connect(port: int) -> socket.socket:
    """A connection to the loopback, which the caller closes."""
    return socket.create_connection(("127.0.0.1", port))


def exchange(port: int, parts: Iterable[bytes], *, seconds: float = 30.0) -> Reply:
    """Send ``parts`` until the other end takes no more of them, then listen until it closes."""
    with connect(port) as peer:
        peer.settimeout(seconds)
        sent = 0
        with suppress(OSError):
            for part in parts:
                peer.sendall(part)
                sent += len(part)
        return receive(peer, seconds, sent)


def receive(peer: socket.socket, seconds: float, sent_bytes: int = 0) -> Reply:
    """Listen for ``seconds``, or until the other end closes."""
    data, deadline = b"", time.monotonic() + seconds
    while (left := deadline - time.monotonic()) > 0:
        peer.settimeout(left)
        try:
            block = peer.recv(_BLOCK_BYTES)
        except TimeoutError:
            break
        except OSError:
            return Reply(data, is_closed=True, sent_bytes=sent_bytes)
        if not block:
            return Reply(data, is_closed=True, sent_bytes=sent_bytes)
        data += block
    return Reply(data, is_closed=False, sent_bytes=sent_bytes)


def drip(port: int, first: bytes, drop: bytes, *, seconds: float) -> Reply:
    """Send ``first``, then ``drop`` again and again.

    Ends when the other end closes, or after ``seconds``.
    """
    with connect(port) as peer:
        peer.sendall(first)
        data, deadline = b"", time.monotonic() + seconds
        while time.monotonic() < deadline:
            with suppress(OSError):
                if drop:
                    peer.sendall(drop)
            reply = receive(peer, 0.1)
            data += reply.data
            if reply.is_closed:
                return Reply(data, is_closed=True)
        return Reply(data, is_closed=False)


def head(path: str, *lines: str, method: str = "POST", host: str = "localhost") -> bytes:
    """The head of a request, up to and with the empty line."""
    return "\r\n".join((f"{method} {path} HTTP/1.1", f"Host: {host}", *lines, "", "")).encode()


def chunk(data: bytes) -> bytes:
    """One piece of a body whose length was not said."""
    return b"%x\r\n%s\r\n" % (len(data), data)
