"""The holder's end of its unix socket: one daemon at a time, same user only, frames in and out without blocking."""

import math
import os
import socket
from collections.abc import Iterator
from contextlib import suppress
from typing import Final

from controller_client.framing import Unpacker, pack
from controller_client.peer_credentials import is_same_user
from controller_client.protocol.codec import decode_to_holder, encode
from controller_client.protocol.errors import RemoteProtocolError
from controller_client.protocol.messages import Error, Message, ToHolder

HIGH_WATER_BYTES: Final = 256 * 1024
"""Above this much unsent, output waits in the ring instead of here."""
# Most frames are short, and a buffer that malloc has to map costs more than reading a long one in parts.
_RECEIVE_BYTES: Final = 32 * 1024


class HolderLink:
    """A daemon that connected. After ``is_closed`` nothing can be sent or received."""

    def __init__(self, connection: socket.socket) -> None:
        connection.setblocking(False)
        self._socket = connection
        self._unpacker = Unpacker()
        self._outgoing = bytearray()
        self._held_until: float | None = None
        self.is_closed = False

    def fileno(self) -> int:
        """For select."""
        return self._socket.fileno()

    @property
    def wants_write(self) -> bool:
        """Whether the socket was too full to take everything."""
        return bool(self._outgoing) and self._held_until is None and not self.is_closed

    @property
    def held_until(self) -> float | None:
        """When ``flush`` is due although nothing is added; None if nothing is held."""
        return self._held_until

    @property
    def has_room(self) -> bool:
        """Whether more output may be handed over."""
        return len(self._outgoing) < HIGH_WATER_BYTES and not self.is_closed

    def send(self, message: Message) -> None:
        """Queue a frame; it leaves with the next ``flush``."""
        if not self.is_closed:
            self._outgoing += pack(encode(message))
            self._held_until = None

    def send_in_company(self, message: Message, until: float) -> None:
        """Queue a frame that may wait for the next one ``until`` then (monotonic seconds)."""
        is_alone = not self._outgoing
        self.send(message)
        if is_alone:
            self._held_until = until

    def flush(self, now: float = math.inf) -> None:
        """Send as much as the socket takes; what is held, once its time has come."""
        if self._held_until is not None and now >= self._held_until:
            self._held_until = None
        while self.wants_write:
            try:
                sent = self._socket.send(self._outgoing)
            except BlockingIOError:
                return
            except OSError:
                self.close()
                return
            del self._outgoing[:sent]

    def receive(self) -> Iterator[ToHolder]:
        """The messages that arrived; closes on the end of the stream, and with an ERROR on one that is none."""
        try:
            data = self._socket.recv(_RECEIVE_BYTES)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        if not data:
            self.close()
            return
        try:
            for frame in self._unpacker.feed(data):
                yield decode_to_holder.decode(frame)
        except RemoteProtocolError as error:
            self.refuse(error.code, str(error))

    def refuse(self, code: str, message: str) -> None:
        """Say what is wrong, and hang up."""
        self.send(Error(code=code, message=message))
        self.flush()
        self.close()

    def close(self) -> None:
        """Hang up; what was not sent is lost, and is asked for again by the next daemon."""
        if not self.is_closed:
            self.is_closed = True
            self._outgoing.clear()
            self._socket.close()


def listen(name: str) -> socket.socket:
    """A listening socket of that name in the current directory, for our own user alone."""
    with suppress(FileNotFoundError):
        os.unlink(name)  # noqa: PTH108 (relative on purpose)
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    listener.bind(name)
    listener.listen(8)
    listener.setblocking(False)
    return listener


def accept(listener: socket.socket) -> HolderLink | None:
    """The daemon that connected; None if nobody did, or somebody else. Raises OSError where there is nothing left to talk through."""
    try:
        connection, _ = listener.accept()
    except (BlockingIOError, ConnectionAbortedError):
        return None
    try:
        if is_same_user(connection):
            return HolderLink(connection)
    except OSError:
        pass
    connection.close()
    return None
