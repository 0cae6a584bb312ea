"""Everything that is said to a Redis server, recorded with its command MONITOR."""

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from tests.support.databases.redis_server import Redis
from tests.support.waiting import wait_until

_SECONDS = 60.0


class Traffic:
    r"""The recorded traffic so far. Redis writes bytes that are no text as ``\xNN``."""

    def __init__(self) -> None:
        self._heard = bytearray()
        self._lock = threading.Lock()

    def hear(self, data: bytes) -> None:
        with self._lock:
            self._heard += data

    @property
    def text(self) -> bytes:
        with self._lock:
            return bytes(self._heard)


@contextmanager
def monitored(redis: Redis) -> Iterator[Traffic]:
    """The traffic of ``redis`` while the block runs."""
    traffic = Traffic()
    with socket.create_connection(("127.0.0.1", redis.port)) as connection:

        def listen() -> None:
            while data := connection.recv(1 << 16):
                traffic.hear(data)

        connection.sendall(b"MONITOR\r\n")
        listener = threading.Thread(target=listen, daemon=True)
        listener.start()
        wait_until(lambda: traffic.text.startswith(b"+OK"), _SECONDS, "MONITOR to begin")
        try:
            yield traffic
        finally:
            connection.shutdown(socket.SHUT_RDWR)
            listener.join(_SECONDS)
