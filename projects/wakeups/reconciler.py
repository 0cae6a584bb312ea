"""The reconciler: it looks once a second for work whose doorbell was lost.

One look serves all controllers of this process. It also finds connections that were fenced or
revoked, and commands that were handed over to a connection and never came. If each connection
looked for itself, every idle controller would cost a query a second.
"""

import logging
from datetime import timedelta
from typing import Final, NamedTuple
from uuid import UUID

from projects.conf import conf
from projects.process import metrics
from projects.process.task import Rounds
from projects.storage import clock
from projects.storage.access import in_database
from projects.storage.columns import as_parameter, time_as_parameter
from projects.storage.rows import fetch_rows
from projects.wakeups.bus import exchange
from projects.wakeups.doorbells import controller_group, files_group
from projects.wakeups.serving import Served, all_served

logger = logging.getLogger(__name__)

IN_FLIGHT: Final = timedelta(milliseconds=250)
"""A command younger than this is not counted as lost: its doorbell may still be on its way."""

# Few rows are unsettled at any time, and these have an index of their own.
_COMMANDS: Final = """
SELECT c.controller_id, MIN(c.created_at) < %s
FROM projects_controllercommand c JOIN projects_controller k ON k.id = c.controller_id
WHERE c.settled_at IS NULL AND (c.sent_epoch IS NULL OR c.sent_epoch < k.epoch)
GROUP BY c.controller_id
"""
_QUESTIONS: Final = """
SELECT DISTINCT f.controller_id
FROM projects_filerequest f JOIN projects_controller k ON k.id = f.controller_id
WHERE f.answer IS NULL AND f.expires_at > %s AND f.sent_epoch < k.epoch
"""

_CURRENT: Final = (
    "SELECT id, epoch, last_command_seq FROM projects_controller WHERE id IN ({places})"
)

# Small enough for every database's limit of parameters.
_IDS_AT_ONCE: Final = 500


class _Command(NamedTuple):
    controller_id: UUID
    is_lost: bool


class _Question(NamedTuple):
    controller_id: UUID


class _Current(NamedTuple):
    id: UUID
    epoch: int
    last_command_seq: int


class _Found(NamedTuple):
    """The result of one look."""

    commands: list[_Command]
    questions: list[_Question]
    outdated: list[UUID]


async def look() -> None:
    """Ring in this process for every controller that has work waiting.

    Raises StorageUnavailable.
    """
    here = exchange()
    if not here.listeners():
        return
    found = await in_database(_find, all_served())
    for controller_id in found.outdated:
        here.ring_here(controller_group(controller_id))
    for command in found.commands:
        if here.ring_here(controller_group(command.controller_id)) and command.is_lost:
            metrics.LOST_COMMAND.inc()
    for question in found.questions:
        here.ring_here(files_group(question.controller_id))


def _outdated(served: list[tuple[Served, int]]) -> list[UUID]:
    """The controllers whose connection is not the newest, or has not sent their last command."""
    found: list[UUID] = []
    for start in range(0, len(served), _IDS_AT_ONCE):
        some = served[start : start + _IDS_AT_ONCE]
        places = ", ".join(["%s"] * len(some))
        query = _CURRENT.format(places=places)
        keys = [as_parameter(each.controller_id) for each, _ in some]
        current = {row.id: row for row in fetch_rows(_Current, query, keys)}
        found += [
            each.controller_id
            for each, sent_up_to in some
            if (now := current.get(each.controller_id)) is None
            or now.epoch != each.epoch
            or now.last_command_seq > sent_up_to
        ]
    return found


def _find(served: list[tuple[Served, int]]) -> _Found:
    clock.measure()
    now = clock.now()
    return _Found(
        fetch_rows(_Command, _COMMANDS, [time_as_parameter(now - IN_FLIGHT)]),
        fetch_rows(_Question, _QUESTIONS, [time_as_parameter(now)]),
        _outdated(served),
    )


ROUNDS: Final = Rounds("safety net", look, lambda: conf.safety_net_seconds, is_eager=False)
