"""The reasons of the server for closing a connection, each with its ``close_code``.

Violations that the protocol package itself finds are in ``controller_client.protocol.errors``.
"""

from controller_client.protocol.errors import ProtocolError, RemoteProtocolError
from controller_client.protocol.limits import CloseCode


class Declined(RemoteProtocolError):
    """The connection cannot go on, although its host broke no rule. Nothing is put on record."""


class Fenced(Declined):
    """A newer connection of the same controller was accepted."""

    code = "FENCED"
    close_code = CloseCode.FENCED

    def __init__(self) -> None:
        super().__init__("a newer connection of this controller took over")


class DatabaseRestored(Declined):
    """The database no longer has what this very connection took from it or stored in it.

    The next HELLO reconciles both sides.
    """

    code = "DATABASE_RESTORED"
    close_code = CloseCode.GOING_AWAY

    def __init__(self) -> None:
        super().__init__("the server's database is older than this connection; connect again")


class SessionNotNamed(Declined):
    """A frame is about a session that ran before this connection, and that HELLO did not name.

    The next HELLO has to name the session if the daemon has it.
    """

    code = "SESSION_NOT_NAMED"
    close_code = CloseCode.GOING_AWAY

    def __init__(self) -> None:
        super().__init__("HELLO did not name the session of this frame; connect again")


class StillConnected(Declined):
    """The host says that it was booted anew, and its lease of the boot before still runs.

    Either the host came back fast, or this is a copy of its disk on another machine.
    """

    code = "STILL_CONNECTED"
    close_code = CloseCode.GOING_AWAY

    def __init__(self) -> None:
        super().__init__(
            "this host is connected from another boot: that lease has to run out before its "
            "sessions are lost; connect again"
        )


class SecondInstance(Declined):
    """The peer may have a copy of the credential; ``reason`` says why it looks like one."""

    code = "SECOND_INSTANCE"
    close_code = CloseCode.SECOND_INSTANCE

    def __init__(self, reason: str) -> None:
        super().__init__(reason)


class AwaitsApproval(Declined):
    """The host was enrolled, and no operator has let it in yet. It did nothing wrong."""

    code = "AWAITS_APPROVAL"
    close_code = CloseCode.AWAITS_APPROVAL

    def __init__(self) -> None:
        super().__init__(
            "an operator of the server has to approve this host first: manage.py approve, or its "
            "page in the admin"
        )


class VersionUnsupported(Declined):
    """The host and the server have no protocol version in common."""

    code = "VERSION_UNSUPPORTED"
    close_code = CloseCode.VERSION

    def __init__(self, supported: tuple[int, ...]) -> None:
        super().__init__(f"this server speaks protocol version {', '.join(map(str, supported))}")


class Revoked(Declined):
    """The credential or its controller was revoked, or the credential expired."""

    code = "REVOKED"
    close_code = CloseCode.UNAUTHENTICATED

    def __init__(self) -> None:
        super().__init__("this credential is no longer valid")


class HelloExpected(RemoteProtocolError):
    """The first frame was no HELLO, or a later one was."""

    code = "HELLO_EXPECTED"

    def __init__(self) -> None:
        super().__init__("the first frame of a connection, and only the first, is HELLO")


class HelloLate(Declined):
    """No frame came before the deadline: the host, the network or this server was too slow."""

    code = "HELLO_EXPECTED"

    def __init__(self) -> None:
        super().__init__("no HELLO came in time")


class UnknownSession(RemoteProtocolError):
    """A frame names a session that this controller does not have. It may exist elsewhere."""

    code = "UNKNOWN_SESSION"

    def __init__(self) -> None:
        super().__init__("this controller has no such session")


class UnexpectedFrame(RemoteProtocolError):
    """A frame that a session in its present state cannot have caused."""

    code = "UNEXPECTED_FRAME"

    def __init__(self, message_type: str, state: str) -> None:
        super().__init__(f"{message_type} cannot come from a session in state {state}")


class TooManyFrames(RemoteProtocolError):
    """Frames that the window does not bound arrive faster than they are handled."""

    code = "TOO_MANY_FRAMES"
    close_code = CloseCode.WINDOW_VIOLATED

    def __init__(self, limit: int) -> None:
        super().__init__(f"more than {limit} frames are waiting")


class UnaskedAnswer(RemoteProtocolError):
    """A frame answers a question that was not asked here, or was answered already."""

    code = "UNASKED_ANSWER"

    def __init__(self) -> None:
        super().__init__("nobody asked for this answer")


def first_of(group: ExceptionGroup[Exception]) -> Exception:
    """The first exception in a group and its subgroups, or the first protocol error if any."""
    leaves = [
        first_of(error) if isinstance(error, ExceptionGroup) else error
        for error in group.exceptions
    ]
    return next((leaf for leaf in leaves if isinstance(leaf, ProtocolError)), leaves[0])
