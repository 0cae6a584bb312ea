"""The clock of a session's lifetime, which may be paused while the program waits for a person.

All pauses together are bounded. The holder keeps the clock: whatever becomes of the server, the
daemon or the person, the time runs out.
"""

from controller_client.protocol.messages import LifetimeReport, PauseLifetime


class Lifetime:
    """A lifetime of ``seconds`` from now on. ``now`` is always of ``lifetime_clock``."""

    def __init__(self, seconds: float, now: float) -> None:
        self._until = now + seconds
        self._paused_at: float | None = None
        self._pause_left_seconds = 0.0
        self._pause_used_seconds = 0.0
        self._last_seq = 0

    def pause(self, command: PauseLifetime, now: float) -> None:
        """Pause or resume. A command that came late or twice changes nothing."""
        if command.seq <= self._last_seq:
            return
        self._last_seq = command.seq
        self._settle(now)
        self._pause_left_seconds = max(0.0, command.max_seconds - self._pause_used_seconds)
        self._paused_at = now if command.is_paused else None

    def is_over(self, now: float) -> bool:
        """Return whether the program has to end."""
        return now >= self._until + self._stood_seconds(now)

    @property
    def ends_at(self) -> float:
        """The end of the lifetime if no other command comes."""
        return self._until + (self._pause_left_seconds if self._paused_at is not None else 0.0)

    def report(self, now: float) -> LifetimeReport:
        """Return the time that is left, and the pause."""
        stood = self._stood_seconds(now)
        pause_left = self._pause_left_seconds - stood
        return LifetimeReport(
            left_seconds=max(0.0, self._until + stood - now),
            is_paused=self._paused_at is not None and pause_left > 0,
            pause_left_seconds=pause_left,
        )

    def _stood_seconds(self, now: float) -> float:
        """Return the length of the current pause, which is never longer than allowed."""
        return (
            0.0 if self._paused_at is None else min(now - self._paused_at, self._pause_left_seconds)
        )

    def _settle(self, now: float) -> None:
        stood = self._stood_seconds(now)
        self._until += stood
        self._pause_used_seconds += stood
        self._pause_left_seconds -= stood
        if self._paused_at is not None:
            self._paused_at = now
