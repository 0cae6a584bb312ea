"""A bounded list of the times at which one stream reached certain offsets."""

from bisect import bisect_right
from typing import Final

from controller_client.protocol.messages import HostTime

STEP_SECONDS: Final = 0.1
"""A frame holds the output of no longer time, unless the list of times is full."""
# Enough for three minutes of steady output. Beyond that the times of the past get coarser.
_MAX_MARKS: Final = 2048


class ProductionTimes:
    """The times at which a stream reached certain offsets, which ascend."""

    def __init__(self, max_marks: int = _MAX_MARKS) -> None:
        self._max_marks = max_marks
        self._offsets: list[int] = []
        self._times: list[HostTime] = []

    def __len__(self) -> int:
        return len(self._offsets)

    def add(self, offset: int, at: HostTime, *, begins_frame: bool) -> None:
        """Note that the byte at ``offset`` was produced ``at`` this moment.

        Bytes that follow others closely have the time of those, unless one ``begins_frame``.
        """
        if self._times and not begins_frame and at.clock - self._times[-1].clock < STEP_SECONDS:
            return
        if len(self._offsets) >= self._max_marks:
            # The first one stays: it is the time of the oldest byte.
            del self._offsets[1::2], self._times[1::2]
        self._offsets.append(offset)
        self._times.append(at)

    def at(self, offset: int) -> HostTime | None:
        """Return when the byte at ``offset`` was produced, as far as that is known."""
        index = bisect_right(self._offsets, offset) - 1
        return self._times[index] if index >= 0 else None

    def end_of_step(self, offset: int) -> int | None:
        """Return the offset at which a frame that begins at ``offset`` should end; None if any."""
        index = bisect_right(self._offsets, offset)
        if index == 0:
            return None
        end = self._times[index - 1].clock + STEP_SECONDS
        while index < len(self._offsets) and self._times[index].clock < end:
            index += 1
        return self._offsets[index] if index < len(self._offsets) else None

    def drop_before(self, offset: int) -> None:
        """Forget what is not needed to tell the time of the bytes from ``offset`` on."""
        index = bisect_right(self._offsets, offset) - 1
        if index > 0:
            del self._offsets[:index], self._times[:index]
