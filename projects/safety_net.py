"""Once a second, one look for all controllers of this process: work for which no doorbell rang, and who was fenced or revoked.

Each connection looking for itself would be a query per second and controller, whether it has anything to do or not.
"""

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import Final
from uuid import UUID

from django.db import connection

from projects import clock, metrics
from projects.conf import conf
from projects.database import in_database
from projects.dispatch import as_parameter, controller_group, files_group, time_as_parameter
from projects.exchange import exchange
from projects.process_task import Rounds

logger = logging.getLogger(__name__)

IN_FLIGHT: Final = timedelta(milliseconds=250)
"""A command younger than this may have been rung for just now: it is looked for, and not counted as lost."""

# Few rows are unsettled at any time, and they have an index of their own.
_COMMANDS: Final = """
SELECT c.controller_id, MIN(c.created_at) < %s FROM projects_controllercommand c JOIN projects_controller k ON k.id = c.controller_id
WHERE c.settled_at IS NULL AND (c.sent_epoch IS NULL OR c.sent_epoch < k.epoch) GROUP BY c.controller_id
"""
_QUESTIONS: Final = """
SELECT DISTINCT f.controller_id FROM projects_filerequest f JOIN projects_controller k ON k.id = f.controller_id
WHERE f.answer IS NULL AND f.expires_at > %s AND f.sent_epoch < k.epoch
"""

# Small enough for every database's limit of parameters.
_IDS_AT_ONCE: Final = 500

_served: set[tuple[UUID, int]] = set()


@contextmanager
def serving(controller_id: UUID, epoch: int) -> Iterator[None]:
    """Inside, the controller's connection is rung, too, when ``epoch`` is not its epoch any more: it was fenced, or revoked."""
    _served.add((controller_id, epoch))
    try:
        yield
    finally:
        _served.discard((controller_id, epoch))


async def look() -> None:
    """Rings, here, for every controller of this process that has work waiting. Raises StorageUnavailable."""
    here = exchange()
    if not here.listeners():
        return
    commands, questions = await in_database(_find)
    for controller_id in await in_database(_outdated, list(_served)):
        here.ring_here(controller_group(controller_id))
    for controller_id, is_lost in commands:
        if here.ring_here(controller_group(controller_id)) and is_lost:
            metrics.LOST_COMMAND.inc()
    for controller_id in questions:
        here.ring_here(files_group(controller_id))


def _outdated(served: list[tuple[UUID, int]]) -> list[UUID]:
    """Controllers served under an epoch that is not theirs any more."""
    found: list[UUID] = []
    for start in range(0, len(served), _IDS_AT_ONCE):
        some = served[start : start + _IDS_AT_ONCE]
        query = f"SELECT id, epoch FROM projects_controller WHERE id IN ({', '.join(['%s'] * len(some))})"  # noqa: S608 - placeholders alone
        with connection.cursor() as cursor:
            cursor.execute(query, [as_parameter(controller_id) for controller_id, _ in some])
            current = {UUID(str(row[0])): row[1] for row in cursor.fetchall()}
        found += [controller_id for controller_id, epoch in some if current.get(controller_id) != epoch]
    return found


def _find() -> tuple[list[tuple[UUID, bool]], list[UUID]]:
    clock.measure()
    now = clock.now()
    with connection.cursor() as cursor:
        cursor.execute(_COMMANDS, [time_as_parameter(now - IN_FLIGHT)])
        commands = [(UUID(str(row[0])), bool(row[1])) for row in cursor.fetchall()]
        cursor.execute(_QUESTIONS, [time_as_parameter(now)])
        questions = [UUID(str(row[0])) for row in cursor.fetchall()]
    return commands, questions


ROUNDS: Final = Rounds("safety net", look, lambda: conf.safety_net_seconds, is_eager=False)
