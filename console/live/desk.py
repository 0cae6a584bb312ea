"""The work of one connection for its person: the open session, and its keyboard.

Each action asks again what the person may do. The keyboard is that of the operator, not of the
connection: it survives a server that dies, and goes back if no browser keeps it
(``projects.sessions.transactions.keyboard``).
"""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Final
from uuid import UUID, uuid5

from console.live import session_reads
from console.live.feed import feeds
from console.live.messages import (
    Input,
    Release,
    Resize,
    Seen,
    Take,
    Taken,
    ToBrowser,
    Typed,
    WatchSession,
)
from console.live.person import LoginEnded, Person, person_of
from console.live.watcher import Watcher
from controller_client.protocol.messages import Stream
from projects import services
from projects.accounts.authentication import Caller
from projects.errors.base import Forbidden
from projects.errors.sessions import KeyboardNotHeld, SessionEnded, SessionNotFound
from projects.output.view import STDOUT
from projects.storage.access import NotLetThrough, checked_by, in_database

KEEP_SECONDS: Final = 10.0
"""A browser with a keyboard says so this often."""

Send = Callable[[ToBrowser], Awaitable[None]]


class NothingOpen(Forbidden):
    """The browser has not opened a session, or has opened one already."""


class Desk:
    """The open session of one connection. ``person`` is renewed by the connection."""

    def __init__(self, session_key: str, person: Person, send: Send) -> None:
        self.person = person
        self.watchers: dict[Stream, Watcher] = {}
        self._session_key = session_key
        self._send = send
        self._project_id: UUID | None = None
        self._session_id: UUID | None = None
        self._has_keyboard = self._has_typed = False

    def check(self) -> None:
        """Raises Forbidden if the person may not see the open session any more."""
        if self._project_id is not None and not (
            self.person.may_read and self.person.sees(self._project_id)
        ):
            raise Forbidden("you may not see this session any more")

    async def give_back_unless_allowed(self) -> None:
        """Hand the keyboard back if the person may not type any more, for they could not do it."""
        if self._project_id is None or self._session_id is None or not self._has_keyboard:
            return
        if self._may_type(self.person):
            return
        self._has_keyboard = False
        with suppress(KeyboardNotHeld, SessionEnded, SessionNotFound):
            await services.session_keyboard_release(
                self._project_id,
                self._session_id,
                operator=self.person.actor,
                note="handed back by itself: the operator may not type here any more",
            )

    async def open(self, message: WatchSession) -> None:
        """Open a session, which is put on record. Raises Forbidden or SessionNotFound."""
        if self.watchers:
            raise NothingOpen("a session is open already")
        opened = await in_database(session_reads.open_session, self.person, message.session_id)
        self._project_id, self._session_id = opened.project_id, message.session_id
        for stream in opened.streams:
            offset = message.offset if stream == STDOUT else message.stderr
            self.watchers[stream] = Watcher(message.session_id, stream, offset, self._send)

    def seen(self, message: Seen) -> None:
        """The browser shows a stream up to an offset."""
        if message.stream in self.watchers:
            self.watchers[message.stream].seen(message.offset)

    async def take(self, message: Take) -> None:
        """Take the keyboard, or go on with it."""
        project_id, session_id = self._open_session()
        if message.has:
            if not await self._keep(session_id):
                raise KeyboardNotHeld(session_id, "")
        else:
            await services.session_keyboard_take(
                project_id, session_id, operator=self.person.actor, is_insisting=message.insists
            )
        self._has_keyboard = True
        await self._send(Taken())

    async def ask(self) -> None:
        """Ask the operator who has the keyboard for it."""
        project_id, session_id = self._open_session()
        await services.session_keyboard_ask(project_id, session_id, operator=self.person.actor)

    async def type(self, message: Input) -> None:
        """Commit an input, once for its number. The rights are read in the same hop."""
        project_id, session_id = self._open_session()
        caller = Caller(project_id, self.person.actor, frozenset({"session:input", "shell:any"}))
        request_id = uuid5(message.keyboard, f"{session_id} {message.seq}")
        try:
            with checked_by(self._check_typing):
                await services.session_keyboard_type(
                    project_id, session_id, message.text, caller=caller, request_id=request_id
                )
        except NotLetThrough:
            raise Forbidden("you may not type here any more") from None
        self._has_typed = True
        await self._send(Typed(message.seq))

    async def release(self, message: Release) -> None:
        """Hand the keyboard back to the caller."""
        project_id, session_id = self._open_session()
        self._has_keyboard = False
        await services.session_keyboard_release(
            project_id, session_id, operator=self.person.actor, note=message.note.strip()
        )

    async def resize(self, message: Resize) -> None:
        """Give the terminal another size; only who has the keyboard may."""
        project_id, session_id = self._open_session()
        if not self._has_keyboard:
            raise KeyboardNotHeld(session_id, "")
        caller = Caller(project_id, self.person.actor, frozenset({"session:input"}))
        await services.session_resize(
            project_id,
            session_id,
            rows=message.rows,
            cols=message.cols,
            caller=caller,
            wait_seconds=0.0,
        )

    async def keep(self) -> None:
        """Keep the keyboard for as long as the connection lasts."""
        while True:
            await asyncio.sleep(KEEP_SECONDS)
            if self._has_keyboard and self._session_id is not None:
                self._has_keyboard = await self._keep(self._session_id)

    async def _keep(self, session_id: UUID) -> bool:
        has_typed, self._has_typed = self._has_typed, False
        return await services.session_keyboard_keep(
            session_id, operator=self.person.actor, has_typed=has_typed
        )

    def _open_session(self) -> tuple[UUID, UUID]:
        """The project and the session that may be typed into, whose output hurries then.

        Raises Forbidden.
        """
        if self._project_id is None or self._session_id is None:
            raise NothingOpen("no session is open")
        self.check()
        self.person.require_typing()
        feeds().hurry(self._session_id)
        return self._project_id, self._session_id

    def _check_typing(self) -> None:
        """Read the rights anew, in the thread and on the connection of the input."""
        try:
            person = person_of(self._session_key)
        except LoginEnded as error:
            raise NotLetThrough from error
        if not self._may_type(person):
            raise NotLetThrough

    def _may_type(self, person: Person) -> bool:
        may_here = self._project_id is not None and person.sees(self._project_id)
        return may_here and person.may_read and person.may_type
