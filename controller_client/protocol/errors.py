"""What can be wrong, as a tree::

    ProtocolError
    ├── LocalProtocolError        we misused this package; nothing was changed
    │   ├── IllegalTransition     from_state, to_state
    │   └── UnknownKeyName        name (kept out of the text: it may be anything a caller typed)
    └── RemoteProtocolError       the peer broke the protocol; close_code says how to close
        ├── BadFrame              not decodable as any message it may send
        ├── FrameTooLarge         size_bytes, limit_bytes
        ├── WindowViolated        more un-acknowledged output than was granted
        ├── OffsetAhead           stream, expected, offset: bytes are missing and no GAP explains them
        └── AckAhead              stream, sent, offset: an ACK of bytes that were never sent

Texts are built from the fields and never contain payload.
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
        self.from_state = from_state
        self.to_state = to_state
        super().__init__(f"a session in state {from_state} cannot become {to_state}")


class UnknownKeyName(LocalProtocolError):
    """No key has this name."""

    code = "UNKNOWN_KEY_NAME"

    def __init__(self, name: str) -> None:
        self.name = name
        super().__init__(f"no key has this name of {len(name)} characters")


class RemoteProtocolError(ProtocolError):
    """The peer broke the protocol; the connection is to be closed with ``close_code`` after an ERROR."""

    code = "REMOTE_PROTOCOL_ERROR"
    close_code: ClassVar[int] = CloseCode.BAD_FRAME


class BadFrame(RemoteProtocolError):
    """The frame is not one of the messages its sender may send."""

    code = "BAD_FRAME"

    def __init__(self, reason: str) -> None:
        self.reason = reason
        super().__init__(f"bad frame: {reason}")


class FrameTooLarge(RemoteProtocolError):
    """The frame is over the limit."""

    code = "FRAME_TOO_LARGE"

    def __init__(self, size_bytes: int, limit_bytes: int) -> None:
        self.size_bytes = size_bytes
        self.limit_bytes = limit_bytes
        super().__init__(f"frame of {size_bytes} bytes is over the limit of {limit_bytes}")


class WindowViolated(RemoteProtocolError):
    """The sender ignored its window."""

    code = "WINDOW_VIOLATED"
    close_code = CloseCode.WINDOW_VIOLATED

    def __init__(self, in_flight_bytes: int, window_bytes: int) -> None:
        self.in_flight_bytes = in_flight_bytes
        self.window_bytes = window_bytes
        super().__init__(f"{in_flight_bytes} bytes in flight in a window of {window_bytes}")


class OffsetAhead(RemoteProtocolError):
    """Output skipped bytes without a GAP."""

    code = "OFFSET_AHEAD"

    def __init__(self, stream: str, expected: int, offset: int) -> None:
        self.stream = stream
        self.expected = expected
        self.offset = offset
        super().__init__(f"{stream} jumped from {expected} to {offset} without a gap")


class AckAhead(RemoteProtocolError):
    """The peer acknowledged bytes it cannot have."""

    code = "ACK_AHEAD"

    def __init__(self, stream: str, sent: int, offset: int) -> None:
        self.stream = stream
        self.sent = sent
        self.offset = offset
        super().__init__(f"{stream} was acknowledged up to {offset} when only {sent} was sent")
