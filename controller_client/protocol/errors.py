"""Errors of the protocol, as a tree::

    ProtocolError
    ├── LocalProtocolError        we misused this package; nothing was changed
    │   ├── IllegalTransition     a session state cannot follow another
    │   └── UnknownKeyName        no key has this name
    └── RemoteProtocolError       the peer broke the protocol; close_code says how to close
        ├── BadFrame              not decodable as any message that the peer may send
        ├── FrameTooLarge         a frame over MAX_FRAME_BYTES
        ├── WindowViolated        more un-acknowledged output than the window grants
        ├── OffsetAhead           bytes are missing in a stream, and no GAP explains them
        └── AckAhead              an ACK of bytes that were never sent

Texts never contain payload. ``code`` is stable, and is sent to the peer in an ERROR.
"""

from typing import ClassVar

from controller_client.protocol.limits import CloseCode


class ProtocolError(Exception):
    """Root of this package's errors; ``code`` is stable."""

    code: ClassVar[str] = "PROTOCOL_ERROR"


class LocalProtocolError(ProtocolError):
    """Our own code broke a rule of this package."""

    code = "LOCAL_PROTOCOL_ERROR"


class IllegalTransition(LocalProtocolError):
    """A session state cannot follow another."""

    code = "ILLEGAL_TRANSITION"

    def __init__(self, from_state: str, to_state: str) -> None:
        super().__init__(f"a session in state {from_state} cannot become {to_state}")


class UnknownKeyName(LocalProtocolError):
    """No key has this name, which stays out of the text: a caller may have typed a secret."""

    code = "UNKNOWN_KEY_NAME"

    def __init__(self, name: str) -> None:
        super().__init__(f"no key has this name of {len(name)} characters")


class RemoteProtocolError(ProtocolError):
    """The peer broke the protocol: send ERROR and close the connection with ``close_code``."""

    code = "REMOTE_PROTOCOL_ERROR"
    close_code: ClassVar[int] = CloseCode.BAD_FRAME


class BadFrame(RemoteProtocolError):
    """The frame is not one of the messages its sender may send."""

    code = "BAD_FRAME"

    def __init__(self, reason: str) -> None:
        super().__init__(f"bad frame: {reason}")


class FrameTooLarge(RemoteProtocolError):
    """The frame is larger than the limit."""

    code = "FRAME_TOO_LARGE"

    def __init__(self, size_bytes: int, limit_bytes: int) -> None:
        super().__init__(f"frame of {size_bytes} bytes is over the limit of {limit_bytes}")


class WindowViolated(RemoteProtocolError):
    """The sender exceeded the window it was granted."""

    code = "WINDOW_VIOLATED"
    close_code = CloseCode.WINDOW_VIOLATED

    def __init__(self, in_flight_bytes: int, window_bytes: int) -> None:
        super().__init__(f"{in_flight_bytes} bytes in flight in a window of {window_bytes}")


class OffsetAhead(RemoteProtocolError):
    """Output skipped bytes without a GAP."""

    code = "OFFSET_AHEAD"

    def __init__(self, stream: str, expected: int, offset: int) -> None:
        self.stream, self.expected = stream, expected
        super().__init__(f"{stream} jumped from {expected} to {offset} without a gap")


class AckAhead(RemoteProtocolError):
    """The peer acknowledged bytes that were never sent to it."""

    code = "ACK_AHEAD"

    def __init__(self, stream: str, sent: int, offset: int) -> None:
        super().__init__(f"{stream} was acknowledged up to {offset} when only {sent} was sent")
