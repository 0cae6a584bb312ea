"""One direction of a connection: ordered, delayed, cut at any moment."""

from collections.abc import Callable

from controller_client.protocol.codec import encode
from controller_client.protocol.messages import Message
from tests.support.simulation.scheduler import Scheduler


class Link:
    """Delivers frames in order; after a cut, none or those that were already on their way."""

    def __init__(
        self, scheduler: Scheduler, deliver: Callable[[bytes], None], *, longest_delay: float
    ) -> None:
        self._scheduler = scheduler
        self._deliver = deliver
        self._longest_delay = longest_delay
        self._last_arrival = 0.0
        self._is_open = True
        self._arrives = True

    def send(self, message: Message) -> None:
        if not self._is_open:
            return
        frame = encode(message)
        arrival = self._scheduler.now + self._scheduler.random.random() * self._longest_delay
        self._last_arrival = max(self._last_arrival, arrival)
        self._scheduler.at(self._last_arrival, lambda: self._arrive(frame))

    def cut(self, *, keeps_in_flight: bool) -> None:
        self._is_open = False
        self._arrives = self._arrives and keeps_in_flight

    def _arrive(self, frame: bytes) -> None:
        if self._arrives:
            self._deliver(frame)
