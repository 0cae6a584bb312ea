"""What the server committed of one session's output, and what the session's holder has been told of it."""

from collections.abc import Iterable, Mapping

from controller_client.protocol.messages import Ack, Stream, StreamOffset


class AckLedger:
    """Pure: who passes acknowledgements on decides when."""

    def __init__(self, session_id: str) -> None:
        self._session_id = session_id
        self._committed: dict[Stream, int] = {}
        self._told: dict[Stream, int] = {}

    @property
    def committed(self) -> Mapping[Stream, int]:
        """Everything before these offsets is the server's."""
        return self._committed

    @property
    def untold_bytes(self) -> int:
        """Bytes the holder keeps although the server has them."""
        return sum(offset - self._told.get(stream, 0) for stream, offset in self._committed.items())

    def begin(self, committed: Mapping[Stream, int]) -> None:
        """The server says where it stands."""
        self._committed = dict(committed)

    def commit(self, offsets: Iterable[StreamOffset]) -> None:
        """The server committed more."""
        for position in offsets:
            self._committed[position.stream] = position.offset

    def tell_all(self) -> list[StreamOffset]:
        """Everything, for a holder that is attached to: it starts from there, whatever it was told before."""
        self._told = dict(self._committed)
        return self._offsets(self._told)

    def tell_news(self) -> list[Ack]:
        """What the holder does not know yet, in one message or none."""
        news = {stream: offset for stream, offset in self._committed.items() if offset > self._told.get(stream, 0)}
        self._told |= news
        return [Ack(offsets=self._offsets(news))] if news else []

    def _offsets(self, positions: Mapping[Stream, int]) -> list[StreamOffset]:
        return [StreamOffset(session_id=self._session_id, stream=stream, offset=offset) for stream, offset in positions.items()]
