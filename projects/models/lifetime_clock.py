"""The end of a session's lifetime, computed from its host's last report. Pure."""

from datetime import datetime, timedelta
from typing import NamedTuple, Protocol, Self


class _HasLifetime(Protocol):
    """The columns of a session's row from which the lifetime follows."""

    @property
    def started_at(self) -> datetime | None: ...
    @property
    def lifetime_seconds(self) -> float: ...
    @property
    def lifetime_ends_at(self) -> datetime | None: ...
    @property
    def paused_at(self) -> datetime | None: ...
    @property
    def pause_left_seconds(self) -> float | None: ...


class LifetimeClock(NamedTuple):
    """The lifetime of a session as its host last reported it.

    Attributes:
        started_at: when the program started; None before that.
        lifetime_seconds: the lifetime without pauses.
        ends_at: the end as it was at the last report; None for a host that has reported nothing.
        paused_at: when the report came, if the lifetime was paused then.
        pause_left_seconds: how much longer the pause may last.

    """

    started_at: datetime | None
    lifetime_seconds: float
    ends_at: datetime | None
    paused_at: datetime | None
    pause_left_seconds: float | None

    @classmethod
    def of(cls, row: _HasLifetime) -> Self:
        """The lifetime that the columns of a row tell."""
        return cls(
            row.started_at,
            row.lifetime_seconds,
            row.lifetime_ends_at,
            row.paused_at,
            row.pause_left_seconds,
        )

    def is_paused(self, now: datetime) -> bool:
        """Returns True while the lifetime does not run."""
        return self.paused_at is not None and now < self.paused_at + self._pause_left

    def expires_at(self, now: datetime) -> datetime | None:
        """The end of the lifetime if it runs from now on; None before the start."""
        if self.ends_at is None:
            return (
                None
                if self.started_at is None
                else self.started_at + timedelta(seconds=self.lifetime_seconds)
            )
        stood = (
            timedelta(0)
            if self.paused_at is None
            else min(max(now - self.paused_at, timedelta(0)), self._pause_left)
        )
        return self.ends_at + stood

    def expires_at_latest(self, now: datetime) -> datetime | None:
        """The end of the lifetime if its pause lasts as long as it may; None before the start."""
        expires_at = self.expires_at(now)
        if expires_at is None or self.paused_at is None or self.ends_at is None:
            return None if expires_at is None else expires_at + self._pause_left
        return self.ends_at + self._pause_left

    @property
    def _pause_left(self) -> timedelta:
        return timedelta(seconds=self.pause_left_seconds or 0.0)
