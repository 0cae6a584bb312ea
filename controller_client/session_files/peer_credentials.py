"""The user and the process at the other end of a unix socket, as the kernel knows them."""

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
    _, uid, _ = _credentials(connection)
    return bool(uid == os.getuid())


def peer_pid(connection: socket.socket) -> int | None:
    """Return the process that connected, dead or alive; None if this host does not tell.

    Raises OSError.
    """
    if not sys.platform.startswith("linux"):
        return None
    # 0 is a process outside of this namespace.
    return _credentials(connection)[0] or None


def _credentials(connection: socket.socket) -> tuple[int, int, int]:
    pid, uid, gid = _UCRED.unpack(
        connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _UCRED.size)
    )
    return pid, uid, gid
