"""Who is at the other end of a unix socket, asked of the kernel."""

import os
import socket
import struct
import sys

_DARWIN_SOL_LOCAL = 0
_DARWIN_LOCAL_PEERCRED = 1
_UCRED = struct.Struct("3i")


def peer_uid(connection: socket.socket) -> int:
    """User id of the process that connected (or that listens). Raises OSError."""
    if sys.platform == "darwin":
        # struct xucred: version, uid, ...
        credentials = connection.getsockopt(_DARWIN_SOL_LOCAL, _DARWIN_LOCAL_PEERCRED, 76)
        return int(struct.unpack_from("=Ii", credentials)[1])
    _, uid, _ = _UCRED.unpack(connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _UCRED.size))
    return int(uid)


def is_same_user(connection: socket.socket) -> bool:
    """Whether the peer runs as our own user; anybody else is turned away."""
    return peer_uid(connection) == os.geteuid()
