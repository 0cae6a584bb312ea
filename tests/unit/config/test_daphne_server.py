"""Timeouts of Daphne's channels."""

from twisted.internet.task import Clock

from config.edge.daphne_server import Channel


def test_a_shorter_timeout_replaces_a_longer_one() -> None:
    clock, channel = Clock(), Channel()
    channel.callLater = clock.callLater
    channel.setTimeout(60)
    longer = clock.getDelayedCalls()[0]
    # Brought forward, the old one would have to be searched for among those of all connections.
    assert channel.setTimeout(10) == 60
    assert not longer.active()
    assert [call.getTime() for call in clock.getDelayedCalls()] == [10]
    assert channel.setTimeout(None) == 10
    assert clock.getDelayedCalls() == []
