"""A limit on the calls of one API token that a process answers at the same time.

One token's calls must not hold up those of all others. A call takes a place before the database is
asked about its token and before anything is built for it, so a call without a place costs next to
nothing. Some calls queue for a place, first come, first served. The rest is refused at once.
"""

import asyncio
from collections import deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Final

from projects.accounts.errors import RateLimited
from projects.conf import conf

IN_LINE_PER_PLACE: Final = 4
"""How many calls may wait for each place that there is."""
IN_LINE_SECONDS: Final = 10.0
"""How long a call waits for a place. A call that holds a place waits up to three times as long."""
_WHAT: Final = "calls at the same time"
_RETRY_SECONDS: Final = 1.0

Holder = tuple[str, str]


class _Line:
    """The calls of one token: how many have a place, and who waits for one."""

    def __init__(self) -> None:
        self.taken = 0
        self.waiting: deque[asyncio.Future[None]] = deque()


_lines: dict[Holder, _Line] = {}


@asynccontextmanager
async def place(holder: Holder) -> AsyncIterator[None]:
    """Holds a place for one call of ``holder``, the token as it was shown.

    Raises RateLimited if there is none; nothing was done then.
    """
    line = _lines.setdefault(holder, _Line())
    if line.taken < conf.max_calls_per_token:
        line.taken += 1
    else:
        await _wait_for_place(holder, line)
    try:
        yield
    finally:
        _leave(holder, line)


async def _wait_for_place(holder: Holder, line: _Line) -> None:
    if len(line.waiting) >= conf.max_calls_per_token * IN_LINE_PER_PLACE:
        raise RateLimited(_WHAT, _RETRY_SECONDS)
    turn = asyncio.get_running_loop().create_future()
    line.waiting.append(turn)
    try:
        async with asyncio.timeout(IN_LINE_SECONDS):
            await turn
    except BaseException as error:
        if turn.done() and not turn.cancelled():
            # The place was given at the very moment of the error: it goes to the next call.
            _leave(holder, line)
        elif turn in line.waiting:
            line.waiting.remove(turn)
        if isinstance(error, TimeoutError):
            raise RateLimited(_WHAT, _RETRY_SECONDS) from None
        raise


def _leave(holder: Holder, line: _Line) -> None:
    """Gives the place to the next call in the queue that still wants it.

    A call that gave up a moment ago may still stand in the queue: its future is done.
    """
    while line.waiting:
        turn = line.waiting.popleft()
        if not turn.done():
            turn.set_result(None)
            return
    line.taken -= 1
    if not line.taken:
        _lines.pop(holder, None)
