"""The task that notices what wants a person, and sends the messages.

One process at a time does this (``leader_lease``). Everything is in rows: a worker that dies leaves
an event that is due or a message that is due, and the next worker goes on there. A message that was
on its way is sent again, with the same id. A round that finds nothing to do reads a few small
indexes and writes nothing.
"""

import asyncio
import logging
import time
from typing import Final, NamedTuple

from projects.attention import messages, noticing, telling
from projects.attention.sending import Letter, send
from projects.errors.server import StorageUnavailable
from projects.process import draining
from projects.process import leader_lease as duty
from projects.process.task import Rounds
from projects.storage import clock
from projects.storage.access import in_database, in_upkeep
from projects.storage.columns import time_as_parameter
from projects.storage.rows import fetch_row

logger = logging.getLogger(__name__)

DUTY: Final = "attention"
ROUND_SECONDS: Final = 1.0
LEASE_SECONDS: Final = 15.0


class Todo(NamedTuple):
    """The work of one round, as the rows of its beginning say."""

    wanted: noticing.Wanted
    has_news: bool = False
    has_due_events: bool = False
    has_due_messages: bool = False


class _Signs(NamedTuple):
    """The signs of work. A round without one of them builds no further statements."""

    is_wanted: bool = False
    is_open: bool = False
    is_event_due: bool = False
    is_message_due: bool = False


# Whoever answers an approval ends its event, so the worker has nothing to look for there.
_SIGNS: Final = """
SELECT EXISTS (SELECT 1 FROM projects_project WHERE attention_seconds IS NOT NULL),
    EXISTS (SELECT 1 FROM projects_attentionevent
        WHERE resolved_at IS NULL AND kind <> 'approval_wanted'),
    EXISTS (SELECT 1 FROM projects_attentionevent WHERE due_at <= %s),
    EXISTS (SELECT 1 FROM projects_attentionmessage WHERE due_at <= %s)
"""


class Worker:
    """The rounds of this process, and the messages that it is sending."""

    def __init__(self) -> None:
        self._sending: dict[Letter, asyncio.Task[None]] = {}
        self._leads_until = 0.0

    async def round(self) -> None:
        """Note what is new, write messages, and begin to send them. Raises StorageUnavailable."""
        if draining.has_begun() or not await self._leads():
            return
        todo = await in_upkeep(look)
        if todo.has_news:
            await in_database(noticing.note_news, todo.wanted)
        if todo.has_news or todo.has_due_events:
            await in_database(telling.messages_write)
        if todo != Todo(todo.wanted):
            await self._begin_sending()

    async def _leads(self) -> bool:
        """Return True if this process has the lease; most rounds need not ask for it."""
        now = time.monotonic()
        if now < self._leads_until - LEASE_SECONDS / 2:
            return True
        leads = await in_database(duty.take, DUTY, LEASE_SECONDS)
        self._leads_until = now + LEASE_SECONDS if leads else 0.0
        return leads

    async def _begin_sending(self) -> None:
        self._sending = {each: task for each, task in self._sending.items() if not task.done()}
        for letter in await in_upkeep(messages.due_letters, tuple(self._sending)):
            task = asyncio.create_task(_send(letter), name=f"message {letter.message_id}")
            self._sending[letter] = task


def look() -> Todo:
    """Read what there is to do. Every statement passes over what is kept by an index."""
    now = time_as_parameter(clock.now())
    signs = fetch_row(_Signs, _SIGNS, [now, now]) or _Signs()
    wanted = noticing.projects_that_want() if signs.is_wanted else {}
    return Todo(
        wanted,
        (signs.is_wanted or signs.is_open) and noticing.has_news(wanted),
        signs.is_event_due and telling.has_due_events(),
        signs.is_message_due and messages.has_due_messages(),
    )


async def _send(letter: Letter) -> None:
    outcome = await send(letter)
    try:
        await in_database(messages.record, letter, outcome)
    except StorageUnavailable:
        logger.error("the result of message %s was not stored: it is sent again", letter.message_id)


_WORKER: Final = Worker()
ROUNDS: Final = Rounds("attention", _WORKER.round, lambda: ROUND_SECONDS)
