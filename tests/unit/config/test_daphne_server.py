"""Timeouts of Daphne's channels."""

import pytest
from twisted.internet.task import Clock

from config.edge.daphne_server import Channel


class _Channel(Channel):
    """A channel on a clock of its own, which notes when its time is over."""

    def __init__(self) -> None:
        super().__init__()
        self.clock, self.ended_at = Clock(), list[float]()
        self.callLater, self.seconds = self.clock.callLater, self.clock.seconds

    def timeoutConnection(self) -> None:  # noqa: N802 - the library calls it so
        """Note the time."""
        self.ended_at.append(self.seconds())

    def timers(self) -> list[float]:
        """The times of the timers that run."""
        return [call.getTime() for call in self.clock.getDelayedCalls()]


@pytest.fixture
def channel() -> _Channel:
    return _Channel()


def test_a_shorter_timeout_replaces_a_longer_one(channel: _Channel) -> None:
    channel.setTimeout(60)
    longer = channel.clock.getDelayedCalls()[0]
    # Brought forward, the old one would have to be searched for among those of all connections.
    assert channel.setTimeout(10) == 60
    assert not longer.active()
    assert channel.timers() == [10]
    assert channel.setTimeout(None) == 10
    channel.clock.pump([10, 60])
    assert channel.ended_at == []
    assert channel.timers() == []


def test_a_later_deadline_needs_no_other_timer(channel: _Channel) -> None:
    channel.setTimeout(10)
    channel.clock.advance(4)
    channel.setTimeout(None)
    channel.setTimeout(10)
    assert channel.timers() == [10]
    channel.clock.advance(6)
    assert (channel.ended_at, channel.timers()) == ([], [14])
    channel.clock.advance(4)
    assert (channel.ended_at, channel.timers()) == ([14], [])


def test_a_lost_connection_leaves_no_timer(channel: _Channel) -> None:
    channel.setTimeout(60)
    channel.connectionLost(None)
    assert channel.timers() == []
