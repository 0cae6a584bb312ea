"""Daemon side of one connection: what to send next, when many sessions share it."""

from collections import deque

from controller_client.protocol.messages import Gap, InteractiveCmdDone, InteractiveOutput, Message, Stream

OutputLaneMessage = InteractiveOutput | Gap | InteractiveCmdDone


def _size_bytes(message: OutputLaneMessage) -> int:
    """What the message takes from the window: raw bytes of output only."""
    return len(message.data) if isinstance(message, InteractiveOutput) else 0


class ConnectionSender:
    """Control messages first, then output of the sessions in turns, at most ``window_bytes`` of it unacknowledged.

    Within a session output, gaps and DONE keep their order. A session whose next frame does not fit the window keeps its turn,
    and only frames without bytes overtake it, so a busy neighbour with small frames cannot starve it.
    """

    def __init__(self, window_bytes: int) -> None:
        self._window_bytes = window_bytes
        self._control: deque[Message] = deque()
        # Insertion order is the order of turns; only sessions with something queued are in it.
        self._lanes: dict[str, deque[OutputLaneMessage]] = {}
        self._in_flight: dict[tuple[str, Stream], deque[tuple[int, int]]] = {}
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
        """The message to send now; None if nothing is queued or the window is full."""
        if self._control:
            return self._control.popleft()
        session_id = self._session_to_serve()
        return None if session_id is None else self._take(session_id)

    def acknowledge(self, session_id: str, stream: Stream, offset: int) -> None:
        """The server has everything before ``offset``: what it covers leaves the window. Unknown or old ones are ignored."""
        ranges = self._in_flight.get((session_id, stream))
        if ranges is None:
            return
        while ranges and ranges[0][0] < offset:
            start, end = ranges.popleft()
            self.in_flight_bytes -= min(end, offset) - start
            if end > offset:
                ranges.appendleft((offset, end))
                break
        if not ranges:
            del self._in_flight[session_id, stream]

    def drop_session(self, session_id: str) -> None:
        """The server is through with the session (DONE_ACK, forget): discard what is queued and no longer wait for its ACKs."""
        self.queued_bytes -= sum(map(_size_bytes, self._lanes.pop(session_id, ())))
        for key in [key for key in self._in_flight if key[0] == session_id]:
            self.in_flight_bytes -= sum(end - start for start, end in self._in_flight.pop(key))

    def _session_to_serve(self) -> str | None:
        is_blocked = False
        for session_id, lane in self._lanes.items():
            size = _size_bytes(lane[0])
            if not size or (not is_blocked and self._fits(size)):
                return session_id
            is_blocked = True
        return None

    def _fits(self, size: int) -> bool:
        # A frame larger than the whole window still has to go one day.
        return not self.in_flight_bytes or self.in_flight_bytes + size <= self._window_bytes

    def _take(self, session_id: str) -> OutputLaneMessage:
        lane = self._lanes.pop(session_id)
        message = lane.popleft()
        if lane:
            self._lanes[session_id] = lane
        if isinstance(message, InteractiveOutput) and message.data:
            size = len(message.data)
            self._in_flight.setdefault((session_id, message.stream), deque()).append((message.offset, message.offset + size))
            self.in_flight_bytes += size
            self.queued_bytes -= size
        return message
