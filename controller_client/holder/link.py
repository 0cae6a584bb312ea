"""The holder's end of its unix socket: one daemon at a time, of the same user; never blocks.

What runs below the holder is turned away: a program must not command its own holder.
"""

import math
import os
import socket
from collections.abc import Iterator
from contextlib import suppress
from typing import Final

from controller_client.protocol.codec import decode_from_server, decode_to_holder, encode
from controller_client.protocol.errors import RemoteProtocolError
from controller_client.protocol.messages import Error, Message, ToHolder
from controller_client.session_files.framing import Unpacker, pack, read_frame
from controller_client.session_files.one_shot import StartCommand
from controller_client.session_files.peer_credentials import is_same_user, peer_pid
from controller_client.system.process_tree import is_below_or_gone

HIGH_WATER_BYTES: Final = 256 * 1024
"""Above this much unsent, output waits in the ring instead of here."""
# Most frames are short. A buffer so large that malloc has to map it costs more than reading a long
# frame in parts.
_RECEIVE_BYTES: Final = 32 * 1024


class HolderLink:
    """The connection of a daemon. After ``is_closed`` nothing can be sent or received.

    ``held_until``: when ``flush`` is due although nothing is added; None if nothing is held.
    """

    def __init__(self, connection: socket.socket) -> None:
        connection.setblocking(False)
        self._socket = connection
        self._unpacker = Unpacker()
        self._outgoing = bytearray()
        self.held_until: float | None = None
        self.is_closed = False

    def fileno(self) -> int:
        """Return the descriptor for select."""
        return self._socket.fileno()

    @property
    def wants_write(self) -> bool:
        """True if the socket was too full to take everything."""
        return bool(self._outgoing) and self.held_until is None and not self.is_closed

    @property
    def has_room(self) -> bool:
        """True if more output may be handed over."""
        return len(self._outgoing) < HIGH_WATER_BYTES and not self.is_closed

    def send(self, message: Message) -> None:
        """Queue a frame; it leaves with the next ``flush``."""
        if not self.is_closed:
            self._outgoing += pack(encode(message))
            self.held_until = None

    def send_in_company(self, message: Message, until: float) -> None:
        """Queue a frame that may wait for the next frame, ``until`` then (monotonic seconds)."""
        is_alone = not self._outgoing
        self.send(message)
        if is_alone:
            self.held_until = until

    def flush(self, now: float = math.inf) -> None:
        """Send as much as the socket takes. A frame that is held is sent once its time has come."""
        if self.held_until is not None and now >= self.held_until:
            self.held_until = None
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
        """Yield the messages that arrived.

        Closes at the end of the stream. A frame that is no message is answered with ERROR, and
        closes, too.
        """
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

    def wait_for_start(self) -> StartCommand | None:
        """Wait for START, the first message to a spare holder; None if none will come.

        What follows START stays in the socket.
        """
        with suppress(OSError, EOFError, RemoteProtocolError):
            self._socket.setblocking(True)
            start = decode_from_server.decode(read_frame(self._socket))
            self._socket.setblocking(False)
            if isinstance(start, StartCommand):
                return start
        return None

    def refuse(self, code: str, message: str) -> None:
        """Send ERROR with the reason, and close."""
        self.send(Error(code=code, message=message))
        self.flush()
        self.close()

    def close(self) -> None:
        """Close. What was not sent is lost here; the next daemon asks for it again."""
        if not self.is_closed:
            self.is_closed = True
            self._outgoing.clear()
            self._socket.close()


def listen(name: str) -> socket.socket:
    """Return a listening socket of that name in the current directory."""
    with suppress(FileNotFoundError):
        os.unlink(name)  # noqa: PTH108 (relative on purpose)
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    listener.bind(name)
    listener.listen(8)
    listener.setblocking(False)
    return listener


def accept(listener: socket.socket, *, has_begun: bool) -> HolderLink | None:
    """Return the daemon that connected; None if nobody did, or another user or the program.

    ``has_begun``: there is a program. To know it from the daemon takes one more descriptor. Raises
    OSError if no descriptor is left for the connection.
    """
    try:
        connection, _ = listener.accept()
    except (BlockingIOError, ConnectionAbortedError):
        return None
    try:
        if is_same_user(connection) and not (has_begun and _is_from_below(connection)):
            return HolderLink(connection)
    except OSError:
        pass
    connection.close()
    return None


def _is_from_below(connection: socket.socket) -> bool:
    """Return whether a process of the program connected. Raises OSError.

    One that has ended since may have left its connection to the program.
    """
    pid = peer_pid(connection)
    return pid is not None and is_below_or_gone(pid, os.getpid())
