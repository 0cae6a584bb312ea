"""Why a connection is closed, beside what the protocol package itself finds wrong. ``close_code`` says how."""

from controller_client.protocol.errors import RemoteProtocolError
from controller_client.protocol.limits import CloseCode


class Fenced(RemoteProtocolError):
    """A newer connection of the same controller was accepted."""

    code = "FENCED"
    close_code = CloseCode.FENCED

    def __init__(self) -> None:
        super().__init__("a newer connection of this controller took over")


class SecondInstance(RemoteProtocolError):
    """What may be a copy of the credential is refused; ``reason`` says why it looks like one."""

    code = "SECOND_INSTANCE"
    close_code = CloseCode.SECOND_INSTANCE

    def __init__(self, reason: str) -> None:
        super().__init__(reason)


class AwaitsApproval(RemoteProtocolError):
    """The host was enrolled, and no operator has let it in yet. It did nothing wrong."""

    code = "AWAITS_APPROVAL"
    close_code = CloseCode.AWAITS_APPROVAL

    def __init__(self) -> None:
        super().__init__("an operator of the server has to approve this host first: manage.py approve, or its page in the admin")


class VersionUnsupported(RemoteProtocolError):
    """No protocol version in common."""

    code = "VERSION_UNSUPPORTED"
    close_code = CloseCode.VERSION

    def __init__(self, supported: tuple[int, ...]) -> None:
        super().__init__(f"this server speaks protocol version {', '.join(map(str, supported))}")


class Revoked(RemoteProtocolError):
    """The credential or its controller was revoked, or the credential expired."""

    code = "REVOKED"
    close_code = CloseCode.UNAUTHENTICATED

    def __init__(self) -> None:
        super().__init__("this credential is no longer valid")


class HelloExpected(RemoteProtocolError):
    """The first frame must be HELLO, within its deadline, and no other may be."""

    code = "HELLO_EXPECTED"

    def __init__(self) -> None:
        super().__init__("the first frame of a connection, and only the first, is HELLO")


class UnknownSession(RemoteProtocolError):
    """A frame speaks of a session that is not this controller's; whether it exists is not told."""

    code = "UNKNOWN_SESSION"

    def __init__(self) -> None:
        super().__init__("this controller has no such session")


class UnexpectedFrame(RemoteProtocolError):
    """A frame that a session in its present state cannot have caused."""

    code = "UNEXPECTED_FRAME"

    def __init__(self, message_type: str, state: str) -> None:
        super().__init__(f"{message_type} cannot come from a session in state {state}")


class TooManyFrames(RemoteProtocolError):
    """Frames arrive faster than they are dealt with, and are not output that the window would hold back."""

    code = "TOO_MANY_FRAMES"
    close_code = CloseCode.WINDOW_VIOLATED

    def __init__(self, limit: int) -> None:
        super().__init__(f"more than {limit} frames are waiting")


class UnaskedAnswer(RemoteProtocolError):
    """An answer to a question that was not put on this connection, or was answered already."""

    code = "UNASKED_ANSWER"

    def __init__(self) -> None:
        super().__init__("nobody asked for this answer")
