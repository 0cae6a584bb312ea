"""The in-memory layer: members hear, full ones do not hold up the others, what expired goes."""

import pytest
from channels.exceptions import ChannelFull

from config.channel_layer import LocalChannelLayer

_RING = {"type": "doorbell"}


async def test_every_member_of_the_group_hears_and_nobody_else() -> None:
    layer = LocalChannelLayer()
    inside, other, outside = [await layer.new_channel() for _ in range(3)]
    await layer.group_add("g", inside)
    await layer.group_add("g", other)
    await layer.group_send("g", _RING)
    assert await layer.receive(inside) == _RING
    assert await layer.receive(other) == _RING
    assert outside not in layer.channels


async def test_a_member_that_does_not_listen_holds_up_nobody() -> None:
    layer = LocalChannelLayer(capacity=1)
    deaf, listening = await layer.new_channel(), await layer.new_channel()
    await layer.group_add("g", deaf)
    await layer.group_add("g", listening)
    for _ in range(3):
        await layer.group_send("g", _RING)
        assert await layer.receive(listening) == _RING


async def test_a_full_channel_still_says_so_to_who_sends_to_it_alone() -> None:
    layer = LocalChannelLayer(capacity=1)
    await layer.send("c", _RING)
    with pytest.raises(ChannelFull):
        await layer.send("c", _RING)


async def test_what_nobody_fetched_expires() -> None:
    layer = LocalChannelLayer(expiry=0)
    await layer.group_add("g", "c")
    await layer.group_send("g", _RING)
    layer._clean_at = 0.0  # a second passes
    await layer.group_send("g", _RING)
    assert "c" not in layer.groups["g"]
