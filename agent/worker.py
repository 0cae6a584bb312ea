"""Takes up runs and carries them out: a task of the server process, or the whole of ``manage.py agent_worker``.

A worker holds a run by a lease that it extends while it works. One that is killed stops doing so, and another goes on.
"""

import asyncio
import contextlib
import logging
from collections.abc import Callable
from typing import Final
from uuid import UUID

from agent import records
from agent.conf import conf
from agent.conversation import ModelClient
from agent.runner import AgentRunner, client_for
from projects import draining
from projects.database import in_database
from projects.errors import StorageUnavailable

logger = logging.getLogger(__name__)

BEATS_PER_LEASE: Final = 4
MOST_BEAT_SECONDS: Final = 2.0
"""Whoever asks a run to stop is heard within this."""

_task: asyncio.Task[None] | None = None


def ensure_running() -> None:
    """Starts the worker on the running loop unless it runs there already, or runs are carried out elsewhere."""
    global _task  # noqa: PLW0603 - one per process, and a task needs a reference that lasts
    if conf.is_working_here and (_task is None or _task.done() or _task.get_loop() is not asyncio.get_running_loop()):
        _task = asyncio.create_task(work(), name="agent worker")


async def work(*, only: UUID | None = None, make_client: Callable[[str], ModelClient] = client_for) -> None:
    """Takes up runs until cancelled, or until ``only`` that one has been carried out as far as it goes."""
    active: dict[asyncio.Task[None], UUID] = {}
    try:
        while True:
            for task in [task for task in active if task.done()]:
                del active[task]
            claimed = await _claim(set(active.values()), only) if len(active) < conf.concurrency and not draining.has_begun() else None
            if claimed is not None:
                active[asyncio.create_task(hold(*claimed, make_client=make_client), name=f"run {claimed[0]}")] = claimed[0]
                if only is None:
                    continue
            if only is not None:
                if active:
                    await asyncio.wait(active)
                return
            await asyncio.sleep(conf.poll_seconds)
    finally:
        for task in active:
            task.cancel()
        if active:
            await asyncio.wait(active)


async def _claim(excluded: set[UUID], only: UUID | None) -> tuple[UUID, UUID] | None:
    try:
        return await in_database(records.run_claim, conf.lease_seconds, excluded=excluded, only=only)
    except StorageUnavailable:
        logger.error("the database is away: no run was taken up")
        return None


async def hold(run_id: UUID, lease: UUID, *, make_client: Callable[[str], ModelClient] = client_for) -> None:
    """Carries out the run, and says every now and then that it does. Whoever asks it to stop is heard at the next beat."""
    runner = AgentRunner(run_id, lease, make_client)
    driving = asyncio.create_task(runner.drive(), name=f"drive {run_id}")
    try:
        while not driving.done():
            await asyncio.wait([driving], timeout=_beat_seconds())
            if not driving.done() and not await _is_to_go_on(run_id, lease):
                driving.cancel()
                with contextlib.suppress(asyncio.CancelledError):
                    await driving
                await in_database(records.run_released, run_id, lease)
    except asyncio.CancelledError:
        driving.cancel()
        await asyncio.wait([driving])
        with contextlib.suppress(StorageUnavailable):
            await in_database(records.run_released, run_id, lease)
        raise


def _beat_seconds() -> float:
    return min(conf.lease_seconds / BEATS_PER_LEASE, MOST_BEAT_SECONDS)


async def _is_to_go_on(run_id: UUID, lease: UUID) -> bool:
    try:
        pulse = await in_database(records.run_beat, run_id, lease, conf.lease_seconds, _beat_seconds())
    except records.LeaseLost:
        return False
    except StorageUnavailable:
        # Nothing can be written now, and whoever takes the run up later finds all that was.
        logger.error("the database is away: the lease of run %s was not extended", run_id)
        return True
    # A process that is being stopped gives its runs to others: calls made again there do nothing twice.
    return not (pulse.stop_requested_by or pulse.is_out_of_time or draining.has_begun())
