"""Daemon side of one connection: the order of frames when many sessions share the connection."""

from collections import deque

import msgspec

from controller_client.protocol.limits import MAX_OUTPUT_FRAMES_IN_FLIGHT
from controller_client.protocol.messages import (
    Gap,
    InteractiveCmdDone,
    InteractiveOutput,
    Message,
    Stream,
)

OutputLaneMessage = InteractiveOutput | Gap | InteractiveCmdDone


def _size_bytes(message: OutputLaneMessage) -> int:
    # Only raw bytes of output count in the window.
    return len(message.data) if isinstance(message, InteractiveOutput) else 0


class ConnectionSender:
    """A queue that sends control messages first, and then the output of the sessions in turns.

    At most ``window_bytes`` of output are sent and not acknowledged. Within a session output, gaps
    and DONE keep their order. A session whose next frame does not fit the window keeps its turn,
    and only frames without bytes overtake it. So a busy neighbour with small frames cannot starve
    it.

    Bytes are sent once on a connection: the connection delivers them, or ends. A holder that the
    daemon attaches to again repeats everything that the server has not committed. Of this only the
    bytes are sent that were never sent on this connection. So both sides count the same bytes as in
    flight, whatever becomes of holders.
    """

    def __init__(self, window_bytes: int) -> None:
        self._window_bytes = window_bytes
        self._control: deque[Message] = deque()
        # Insertion order is the order of turns; only sessions with something queued are in it.
        self._lanes: dict[str, deque[OutputLaneMessage]] = {}
        self._in_flight: dict[tuple[str, Stream], deque[tuple[int, int]]] = {}
        self._frames_in_flight = 0
        # The end of the bytes that were sent, by stream.
        self._sent: dict[tuple[str, Stream], int] = {}
        self.in_flight_bytes = 0
        self.queued_bytes = 0

    def push_control(self, message: Message) -> None:
        """Queue a message that never waits behind output."""
        self._control.append(message)

    def push_output(self, session_id: str, message: OutputLaneMessage) -> None:
        """Queue a message of a session's output."""
        self._lanes.setdefault(session_id, deque()).append(message)
        self.queued_bytes += _size_bytes(message)

    def next(self) -> Message | None:
        """Return the message to send now; None if nothing is queued or the window is full."""
        if self._control:
            return self._control.popleft()
        session_id = self._session_to_serve()
        return None if session_id is None else self._take(session_id)

    def acknowledge(self, session_id: str, stream: Stream, offset: int) -> None:
        """Take an ACK of everything before ``offset``, which leaves the window.

        An ACK of an unknown stream, or an old one, is ignored.
        """
        ranges = self._in_flight.get((session_id, stream))
        if ranges is None:
            return
        while ranges and ranges[0][0] < offset:
            start, end = ranges.popleft()
            self.in_flight_bytes -= min(end, offset) - start
            if end > offset:
                ranges.appendleft((offset, end))
                break
            self._frames_in_flight -= 1
        if not ranges:
            del self._in_flight[session_id, stream]

    def discard_queued(self, session_id: str) -> None:
        """Drop the queued output of a session whose holder is gone, or is attached to again.

        Bytes in flight stay counted.
        """
        self.queued_bytes -= sum(map(_size_bytes, self._lanes.pop(session_id, ())))

    def drop_session(self, session_id: str) -> None:
        """Forget a session after its DONE_ACK: drop its queue, and wait for no more ACKs of it."""
        self.discard_queued(session_id)
        for key in [key for key in self._sent if key[0] == session_id]:
            del self._sent[key]
            ranges = self._in_flight.pop(key, ())
            self._frames_in_flight -= len(ranges)
            self.in_flight_bytes -= sum(end - start for start, end in ranges)

    def _session_to_serve(self) -> str | None:
        is_blocked = False
        for session_id, lane in self._lanes.items():
            size = _size_bytes(self._unsent(lane[0]))
            if not size or (not is_blocked and self._fits(size)):
                return session_id
            is_blocked = True
        return None

    def _fits(self, size: int) -> bool:
        # A frame that is larger than the whole window is sent alone.
        if not self.in_flight_bytes:
            return True
        return (
            self.in_flight_bytes + size <= self._window_bytes
            and self._frames_in_flight < MAX_OUTPUT_FRAMES_IN_FLIGHT
        )

    def _unsent(self, message: OutputLaneMessage) -> OutputLaneMessage:
        """Return the message without bytes that were sent before; only its verdict may be left."""
        if not isinstance(message, InteractiveOutput) or not message.data:
            return message
        known = self._sent.get((message.session_id, message.stream), 0) - message.offset
        if known <= 0:
            return message
        known = min(known, len(message.data))
        return msgspec.structs.replace(
            message, offset=message.offset + known, data=message.data[known:]
        )

    def _take(self, session_id: str) -> OutputLaneMessage:
        lane = self._lanes.pop(session_id)
        queued = lane.popleft()
        if lane:
            self._lanes[session_id] = lane
        self.queued_bytes -= _size_bytes(queued)
        message = self._unsent(queued)
        if isinstance(message, InteractiveOutput) and message.data:
            key, end = (message.session_id, message.stream), message.offset + len(message.data)
            self._in_flight.setdefault(key, deque()).append((message.offset, end))
            self._sent[key] = end
            self._frames_in_flight += 1
            self.in_flight_bytes += len(message.data)
        return message
