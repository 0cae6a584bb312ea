"""Takes up runs and carries them out: a task of the server process, or the whole of ``manage.py agent_worker``.

A worker holds a run by a lease that it extends while it works. One that is killed stops doing so, and another goes on.
"""

import asyncio
import contextlib
import logging
import time
from collections.abc import Callable, Collection
from typing import Final, Literal
from uuid import UUID

from agent import records
from agent.conf import conf
from agent.conversation import ModelClient
from agent.runner import AgentRunner, client_for
from projects import draining
from projects.database import in_database
from projects.errors import StorageUnavailable
from projects.process_task import ProcessTask

logger = logging.getLogger(__name__)

BEATS_PER_LEASE: Final = 4
MOST_BEAT_SECONDS: Final = 2.0
"""Whoever asks a run to stop is heard within this."""


def ensure_running() -> None:
    """Starts the worker on the running loop unless it runs there already, or runs are carried out elsewhere."""
    if conf.is_working_here:
        _WORKING.ensure_running()


async def work() -> None:
    """Takes up runs until cancelled."""
    active: dict[asyncio.Task[None], UUID] = {}
    try:
        while True:
            for task in [task for task in active if task.done()]:
                del active[task]
            is_free = len(active) < conf.concurrency and not draining.has_begun()
            if is_free and (claimed := await _claim(excluded=set(active.values()))) is not None:
                active[asyncio.create_task(hold(*claimed), name=f"run {claimed[0]}")] = claimed[0]
            else:
                await asyncio.sleep(conf.poll_seconds)
    finally:
        for task in active:
            task.cancel()
        if active:
            await asyncio.wait(active)


async def carry_out(run_id: UUID, *, make_client: Callable[[str], ModelClient] = client_for) -> None:
    """One run, as far as it goes: to its end, or until it waits for a person. Nothing, while another works on it."""
    if (claimed := await _claim(only=run_id)) is not None:
        await hold(*claimed, make_client=make_client)


async def _claim(*, excluded: Collection[UUID] = (), only: UUID | None = None) -> tuple[UUID, UUID] | None:
    try:
        return await in_database(records.run_claim, conf.lease_seconds, excluded=excluded, only=only)
    except StorageUnavailable:
        logger.error("the database is away: no run was taken up")
        return None


async def hold(run_id: UUID, lease: UUID, *, make_client: Callable[[str], ModelClient] = client_for) -> None:
    """Carries out the run, and says every now and then that it does. Whoever asks it to stop is heard at the next beat."""
    driving = asyncio.create_task(AgentRunner(run_id, lease, make_client).drive(), name=f"drive {run_id}")
    try:
        while not driving.done():
            began = time.monotonic()
            await asyncio.wait([driving], timeout=_beat_seconds())
            verdict = "go on" if driving.done() else await _verdict(run_id, lease, time.monotonic() - began)
            if verdict == "go on":
                continue
            driving.cancel()
            await asyncio.wait([driving])
            if verdict == "end":
                # Its first look at the row says what it ends by.
                await AgentRunner(run_id, lease, make_client).drive()
            else:
                await in_database(records.run_released, run_id, lease)
    except asyncio.CancelledError:
        driving.cancel()
        await asyncio.wait([driving])
        with contextlib.suppress(StorageUnavailable):
            await in_database(records.run_released, run_id, lease)
        raise


def _beat_seconds() -> float:
    return min(conf.lease_seconds / BEATS_PER_LEASE, MOST_BEAT_SECONDS)


async def _verdict(run_id: UUID, lease: UUID, worked_seconds: float) -> Literal["go on", "end", "leave"]:
    try:
        pulse = await in_database(records.run_beat, run_id, lease, conf.lease_seconds, worked_seconds)
    except records.LeaseLost:
        return "leave"
    except StorageUnavailable:
        # Nothing can be written now, and whoever takes the run up later finds all that was.
        logger.error("the database is away: the lease of run %s was not extended", run_id)
        return "go on"
    if pulse.stop_requested_by or pulse.is_out_of_time:
        return "end"
    # A process that is being stopped gives its runs to others: calls made again there do nothing twice.
    return "leave" if draining.has_begun() else "go on"


_WORKING: Final = ProcessTask("agent worker", work)
