"""Calls for a host that has left a moment ago wait for it: most daemons that end are restarted.

A daemon that is ended by a signal says so, and its host is offline at once. Whoever ends it for
good does not differ from whoever restarts it, so for RETURN_SECONDS a call waits, and nothing is
committed for the host meanwhile.
"""

import math
from collections.abc import Callable
from datetime import datetime
from typing import Final, NamedTuple, ParamSpec, TypeVar
from uuid import UUID

from projects.errors.hosts import ControllerOffline
from projects.process import draining
from projects.sessions import selectors
from projects.storage import clock
from projects.storage.access import Hop, in_database
from projects.storage.columns import as_parameter
from projects.storage.rows import fetch_row
from projects.wakeups import doorbells
from projects.wakeups.doorbells import Doorbell

P = ParamSpec("P")
T = TypeVar("T")

RETURN_SECONDS: Final = 4.0
"""A call may take this longer, so the longest, of 55 s, ends before clients give up at 60 s."""

_LEASE: Final = (
    "SELECT lease_expires_at FROM projects_controller WHERE id = %s AND revoked_at IS NULL"
)


class _Lease(NamedTuple):
    ends_at: datetime | None


async def once_back(hop: Hop, action: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """Return what ``hop`` does with ``action``, which commits nothing for a host that is offline.

    It is made again if the host left a moment ago and returns. Raises as ``action`` does.
    """
    try:
        return await hop(action, *args, **kwargs)
    except ControllerOffline as error:
        if error.host_id is None or not await _is_back(error.host_id):
            raise
    return await hop(action, *args, **kwargs)


async def _is_back(host_id: UUID) -> bool:
    async with Doorbell(doorbells.return_group(host_id)) as bell:
        while (left := await in_database(_seconds_left, host_id)) > 0:
            if left == math.inf:
                return True
            if draining.seconds_left_to_wait() <= 0:
                break
            await bell.wait(min(left, draining.seconds_left_to_wait()))
    return False


def _seconds_left(host_id: UUID) -> float:
    """Seconds for which the host may still return; infinite if it is back."""
    lease = fetch_row(_Lease, _LEASE, [as_parameter(host_id)])
    if lease is None or lease.ends_at is None:
        return 0.0
    if selectors.is_online(lease.ends_at):
        return math.inf
    return RETURN_SECONDS - (clock.now() - lease.ends_at).total_seconds()
