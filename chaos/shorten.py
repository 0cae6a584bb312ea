"""Shortening: the fewest faults of a recipe with which a run still breaks the same promise."""

from collections.abc import Awaitable, Callable, Sequence

from chaos.faults.schedule import Fault

Fails = Callable[[list[Fault]], Awaitable[bool]]


async def shortened(faults: Sequence[Fault], fails: Fails) -> list[Fault]:
    """Leave out faults, first many at once, then one by one, as long as ``fails`` is still true.

    The result fails, and no single fault can be left out of it (as far as runs repeat themselves).
    """
    left = list(faults)
    size = max(1, len(left) // 2)
    while left:
        smaller = await _without_some(left, size, fails)
        if smaller is not None:
            left = smaller
            size = min(size, max(1, len(left) // 2))
        elif size == 1:
            break
        else:
            size //= 2
    return left


async def _without_some(left: list[Fault], size: int, fails: Fails) -> list[Fault] | None:
    """The faults without one group of this size, if a run without the group still fails."""
    for begin in range(0, len(left), size):
        rest = left[:begin] + left[begin + size :]
        if await fails(rest):
            return rest
    return None
