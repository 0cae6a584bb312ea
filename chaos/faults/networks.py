"""Faults of the network, by proxies of our own.

A link is cut, stalls, is half open, is slow, loses answers, or is down as a whole. A proxy that is
stopped looks like a stall to both sides, and one that is killed like a link that is down.
"""

import asyncio
from collections.abc import Callable, Mapping
from typing import Final

from chaos.faults.harm import Act, Harm
from chaos.faults.schedule import Fault
from chaos.plant.link import Link

_SLOW_BYTES_PER_SECOND: Final = 50_000.0
_LOST_SHARE: Final = 0.4


def _lasting(name: str, begin: Callable[[Link], None], end: Callable[[Link], None]) -> Act:
    """The fault that does ``begin`` to a link, and ``end`` after its time."""

    async def act(harm: Harm, fault: Fault) -> None:
        link = harm.product.links[name]
        async with harm.lasting(fault):
            begin(link)
            try:
                await asyncio.sleep(fault.seconds)
            finally:
                end(link)

    return act


def cut(name: str) -> Act:
    """The fault that resets every connection of a link."""
    return _lasting(name, Link.cut, lambda _link: None)


def stall(name: str) -> Act:
    """The fault that lets nothing pass a link for a while."""
    return _lasting(name, Link.hold, Link.resume)


def half_open(name: str) -> Act:
    """The fault that swallows what the present connections carry."""
    return _lasting(name, Link.forget, Link.remember)


def slow(name: str) -> Act:
    """The fault that makes a link slow for a while."""
    return _lasting(name, _slow_down, _speed_up)


def _slow_down(link: Link) -> None:
    link.bytes_per_second = _SLOW_BYTES_PER_SECOND


def _speed_up(link: Link) -> None:
    link.bytes_per_second = None


def down(name: str) -> Act:
    """The fault that ends the proxy of a link for a while: connections are reset and refused."""

    async def act(harm: Harm, fault: Fault) -> None:
        link = harm.product.links[name]
        async with harm.lasting(fault):
            await link.close()
            try:
                await asyncio.sleep(fault.seconds)
            finally:
                await link.open()

    return act


def lossy(name: str) -> Act:
    """The fault that loses some answers, after what they answer was done."""
    return _lasting(name, _lose, _keep)


def _lose(link: Link) -> None:
    link.lost_replies = _LOST_SHARE


def _keep(link: Link) -> None:
    link.lost_replies = 0.0


DONE_TO_A_LINK: Final[Mapping[str, Callable[[str], Act]]] = {
    "cut": cut,
    "stall": stall,
    "half_open": half_open,
    "slow": slow,
    "down": down,
}
