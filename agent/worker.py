"""Takes up runs and carries them out, in the server process or in ``manage.py agent_worker``.

A worker renews the lease of its run while it works. After a worker was killed the lease expires,
and another worker takes the run up.
"""

import asyncio
import contextlib
import logging
import time
from collections.abc import Callable, Collection
from typing import Final, Literal
from uuid import UUID

from agent.conf import conf
from agent.llm.conversation import ModelClient
from agent.runs import records
from agent.runs.runner import AgentRunner, client_for
from projects.errors.server import StorageUnavailable
from projects.process import draining
from projects.process.task import ProcessTask
from projects.storage.access import in_database

logger = logging.getLogger(__name__)

BEATS_PER_LEASE: Final = 4
MOST_BEAT_SECONDS: Final = 2.0
"""The longest time until a worker notices a request to stop its run."""


def ensure_running() -> None:
    """Starts the worker on the running loop, once, unless runs are carried out elsewhere."""
    if conf.is_working_here:
        _WORKING.ensure_running()


async def work() -> None:
    """Takes up runs until it is cancelled."""
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


async def carry_out(
    run_id: UUID, *, make_client: Callable[[str], ModelClient] = client_for
) -> None:
    """Carries out one run to its end, or until it waits for a person.

    Nothing happens while another worker has the run.
    """
    if (claimed := await _claim(only=run_id)) is not None:
        await hold(*claimed, make_client=make_client)


async def _claim(
    *, excluded: Collection[UUID] = (), only: UUID | None = None
) -> tuple[UUID, UUID] | None:
    try:
        return await in_database(
            records.run_claim, conf.lease_seconds, excluded=excluded, only=only
        )
    except StorageUnavailable:
        logger.error("the database is away: no run was taken up")
        return None


async def hold(
    run_id: UUID, lease: UUID, *, make_client: Callable[[str], ModelClient] = client_for
) -> None:
    """Carries out the run and renews its lease meanwhile.

    A request to stop it takes effect at the next renewal.
    """
    driving = asyncio.create_task(
        AgentRunner(run_id, lease, make_client).drive(), name=f"drive {run_id}"
    )
    told_at = time.monotonic()
    try:
        while not driving.done():
            beat_seconds = min(conf.lease_seconds / BEATS_PER_LEASE, MOST_BEAT_SECONDS)
            await asyncio.wait([driving], timeout=beat_seconds)
            now = time.monotonic()
            verdict = "unknown" if driving.done() else await _verdict(run_id, lease, now - told_at)
            told_at = told_at if verdict in {"unknown", "lost"} else now
            if verdict in {"unknown", "go on"}:
                continue
            driving.cancel()
            await asyncio.wait([driving])
            if verdict == "end":
                # A new runner reads the row and ends the run by the reason it finds there.
                await AgentRunner(run_id, lease, make_client).drive()
            else:
                await in_database(records.run_released, run_id, lease)
    except asyncio.CancelledError:
        driving.cancel()
        await asyncio.wait([driving])
        with contextlib.suppress(StorageUnavailable):
            await in_database(records.run_released, run_id, lease)
        raise
    finally:
        # The time since the last renewal was work, too, however it ended.
        with contextlib.suppress(StorageUnavailable):
            await in_database(records.run_worked, run_id, time.monotonic() - told_at)


async def _verdict(
    run_id: UUID, lease: UUID, worked_seconds: float
) -> Literal["go on", "end", "leave", "lost", "unknown"]:
    """The next thing to do with the run. Under "lost" and "unknown" its time was not stored."""
    try:
        pulse = await in_database(
            records.run_beat, run_id, lease, conf.lease_seconds, worked_seconds
        )
    except records.LeaseLost:
        return "lost"
    except StorageUnavailable:
        # Nothing can be stored now. The next worker finds all rows.
        logger.error("the database is away: the lease of run %s was not extended", run_id)
        return "unknown"
    if pulse.stop_requested_by or pulse.is_out_of_time:
        return "end"
    # A process that stops gives its runs back. A worker that makes a call again does nothing twice.
    return "leave" if draining.has_begun() else "go on"


_WORKING: Final = ProcessTask("agent worker", work)
