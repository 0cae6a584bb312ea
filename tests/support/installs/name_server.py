"""A name server whose answers a test changes, as those of a container engine change.

It listens at port 53 of an address of the loopback that no other run of tests has, and needs root
for that.
"""

import socketserver
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from ipaddress import IPv4Address
from pathlib import Path
from typing import Final

from tests.support.ports import free_port

_HEADER_BYTES: Final = 12
_ANSWERED, _UNKNOWN = b"\x81\x80", b"\x81\x83"
_A: Final = b"\x00\x01\x00\x01"
_SECONDS: Final = b"\x00\x00\x00\x01"


class NameServer(socketserver.UDPServer):
    """Answers for the IPv4 addresses of ``names``. All other names are unknown."""

    def __init__(self) -> None:
        self.names: dict[str, str] = {}
        # Runs of tests go on side by side, and no two are given the same port.
        high, low = divmod(free_port(), 256)
        self.address = f"127.1.{high}.{low}"
        super().__init__((self.address, 53), _Question)

    def write_configuration(self, path: Path) -> None:
        """Write what makes a program ask this server, in the place of ``/etc/resolv.conf``."""
        path.write_text(f"nameserver {self.address}\n")

    def answer(self, question: bytes) -> bytes:
        """The answer to a question of one name."""
        end = question.index(b"\0", _HEADER_BYTES) + 1
        labels, at = list[str](), _HEADER_BYTES
        while size := question[at]:
            labels.append(question[at + 1 : at + 1 + size].decode())
            at += 1 + size
        asked, kind = question[_HEADER_BYTES : end + 4], question[end : end + 4]
        address = self.names.get(".".join(labels))
        flags = _UNKNOWN if address is None else _ANSWERED
        found = b""
        if address is not None and kind == _A:
            found = b"\xc0\x0c" + _A + _SECONDS + b"\x00\x04" + IPv4Address(address).packed
        counts = b"\x00\x01" + len(found[:1]).to_bytes(2, "big") + bytes(4)
        return question[:2] + flags + counts + asked + found


class _Question(socketserver.BaseRequestHandler):
    server: NameServer

    def handle(self) -> None:
        question, socket = self.request
        socket.sendto(self.server.answer(question), self.client_address)


@contextmanager
def name_server() -> Iterator[NameServer]:
    """A name server that runs inside the block."""
    with NameServer() as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.05,))
        thread.start()
        try:
            yield server
        finally:
            server.shutdown()
            thread.join()
