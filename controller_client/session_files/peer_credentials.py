"""The user at the other end of a unix socket, as the kernel knows it."""

import os
import socket
import struct
import sys

_DARWIN_SOL_LOCAL = 0
_DARWIN_LOCAL_PEERCRED = 1
_UCRED = struct.Struct("3i")


def is_same_user(connection: socket.socket) -> bool:
    """Return whether the peer is of our own user; any other peer must be turned away.

    The peer is the process that connected, or that listens. A process that acts as another user
    turns away everybody but its own user, too. Raises OSError.
    """
    if sys.platform == "darwin":
        # struct xucred: version, uid, ...
        credentials = connection.getsockopt(_DARWIN_SOL_LOCAL, _DARWIN_LOCAL_PEERCRED, 76)
        return bool(struct.unpack_from("=Ii", credentials)[1] == os.getuid())
    _, uid, _ = _UCRED.unpack(
        connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _UCRED.size)
    )
    return bool(uid == os.getuid())
