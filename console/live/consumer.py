"""The WebSocket of people: one connection of one browser page, at CONSOLE_PATH.

A connection shows the board, or one session, or both, and passes on what its person types
(docs/reference/console-socket.md). It is the following tasks, which end together:

* ``receive`` is called by Channels for every frame. It never waits: it notes how far the browser
  has shown its output, and queues everything else. A browser that sends faster than it is served
  loses its connection, because a queue that grows would hide it;
* the obeyer carries out the queued messages one after the other, so inputs leave in their order;
* the checker reads the login and the rights anew every CHECK_SECONDS, and ends the connection, the
  board or the session that they no longer allow;
* the keeper keeps the keyboard (``console.live.desk``);
* the board and the session each have a task that sends (``board``, ``watcher``);
* the leaver sends the browser to another process when this process is being stopped.
"""

import asyncio
import logging
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final

from channels.exceptions import StopConsumer
from channels.generic.websocket import AsyncWebsocketConsumer

from console.live.board import BoardView
from console.live.desk import Desk
from console.live.messages import (
    Ask,
    BadMessage,
    BoardSeen,
    Closed,
    FromBrowser,
    Input,
    Refused,
    Release,
    Resize,
    Seen,
    Take,
    ToBrowser,
    WatchBoard,
    WatchSession,
    decode,
    encode,
)
from console.live.person import (
    LoginEnded,
    Person,
    checks,
    is_from_own_page,
    person_of,
    seconds_to_check,
    session_key_of,
)
from projects.errors.base import ControllerActionError, Forbidden
from projects.errors.server import StorageUnavailable
from projects.process import draining
from projects.storage.access import in_database

logger = logging.getLogger(__name__)

CONSOLE_PATH: Final = "/ws/console/"
CHECK_SECONDS: Final = 2.0
"""What a login or a right allows is noticed to have ended after this time."""
MAX_QUEUED: Final = 32
MAX_PER_PERSON: Final = 50
"""Connections of one person to one server process."""
MAX_CONNECTIONS: Final = 1000

_people: Counter[int] = Counter()


class ConnectionEnded(Exception):
    """The connection is to be closed. ``is_final``: the browser must not connect again."""

    def __init__(self, close_code: int, code: str, message: str, *, is_final: bool = False) -> None:
        self.close_code, self.code, self.is_final = close_code, code, is_final
        super().__init__(message)


class ConsoleConsumer(AsyncWebsocketConsumer):  # type: ignore[misc] # channels is untyped
    """One connection of one page, from its opening to its end."""

    # Doorbells are heard through projects.wakeups, as in the socket of controllers.
    channel_layer_alias = "none"

    async def __call__(
        self,
        scope: dict[str, Any],
        receive: Callable[[], Awaitable[Any]],
        send: Callable[[Any], Awaitable[None]],
    ) -> None:
        """Run until the socket is closed; all tasks of the connection end here."""
        self._life: asyncio.Task[None] | None = None
        self._user_id: int | None = None
        try:
            await super().__call__(scope, receive, send)
        finally:
            if self._life is not None:
                self._life.cancel()
                await asyncio.gather(self._life, return_exceptions=True)
            if self._user_id is not None:
                _people.subtract([self._user_id])
                if not _people[self._user_id]:
                    del _people[self._user_id]

    async def dispatch(self, message: dict[str, Any]) -> None:
        """Call the handler of a message, without the database thread of Channels."""
        await getattr(self, message["type"].replace(".", "_"))(message)

    async def connect(self) -> None:
        """Accept a page of this server that brings a login; refuse everything else with 403."""
        self._is_closing = False
        key = session_key_of(self.scope["headers"])
        if not is_from_own_page(self.scope["headers"]):
            await self.close()
            return
        try:
            person = await in_database(person_of, key or "")
        except LoginEnded:
            await self._turn_away(4401, "LOGIN_ENDED", "sign in again", is_final=True)
            return
        except StorageUnavailable as error:
            await self._turn_away(4503, error.code, str(error))
            return
        if _people.total() >= MAX_CONNECTIONS or _people[person.user_id] >= MAX_PER_PERSON:
            await self._turn_away(4429, "TOO_MANY_PAGES", "too many pages are open")
            return
        self._user_id = person.user_id
        _people[person.user_id] += 1
        self._key = key or ""
        self._desk = Desk(self._key, person, self._send)
        self._board: BoardView | None = None
        self._queue: asyncio.Queue[FromBrowser] = asyncio.Queue(MAX_QUEUED)
        self._stopping = asyncio.Event()
        await self.accept()
        self._life = asyncio.create_task(self._live(), name=f"console of {person.actor}")

    async def websocket_disconnect(self, _message: Mapping[str, Any]) -> None:
        """The socket is gone: ``__call__`` ends the tasks."""
        raise StopConsumer

    async def receive(self, text_data: str | None = None, bytes_data: bytes | None = None) -> None:
        """Note or queue one frame."""
        if self._is_closing:
            return
        try:
            message = decode(text_data if text_data is not None else bytes_data or b"")
            if isinstance(message, Seen):
                self._desk.seen(message)
            elif isinstance(message, BoardSeen):
                if self._board is not None:
                    self._board.seen(message.version)
            else:
                self._queue.put_nowait(message)
        except BadMessage as error:
            await self._shut(ConnectionEnded(4400, "BAD_MESSAGE", str(error), is_final=True))
        except asyncio.QueueFull:
            await self._shut(ConnectionEnded(4429, "TOO_FAST", "messages come too fast"))

    async def _turn_away(
        self, close_code: int, code: str, message: str, *, is_final: bool = False
    ) -> None:
        """Accept, and close with a reason: of a refused handshake a page learns nothing."""
        await self.accept()
        await self._shut(ConnectionEnded(close_code, code, message, is_final=is_final))

    async def _shut(self, end: ConnectionEnded) -> None:
        if self._is_closing:
            return
        self._is_closing = True
        await self._send(Closed(end.code, str(end), end.is_final))
        await self.close(end.close_code)

    async def _send(self, message: ToBrowser) -> None:
        frame = encode(message)
        if isinstance(frame, bytes):
            await self.send(bytes_data=frame)
        else:
            await self.send(text_data=frame)

    # ---- living ----------------------------------------------------------------------------------

    async def _live(self) -> None:
        """Run the loops until one of them ends the connection. Raises no exception."""
        with draining.announced_to(self._stopping):
            try:
                async with asyncio.TaskGroup() as self._tasks:
                    for loop in (self._obey, self._check, self._desk.keep, self._leave):
                        self._tasks.create_task(loop())
            except ExceptionGroup as group:
                await self._shut(_end_of(group))

    async def _obey(self) -> None:
        while True:
            message = await self._queue.get()
            try:
                await self._do(message)
            except StorageUnavailable:
                # An input that may be committed is sent again over the next connection.
                raise
            except ControllerActionError as error:
                about = str(type(message).__struct_config__.tag)
                await self._send(Refused(about, error.code, str(error), error.advice()))

    async def _do(self, message: FromBrowser) -> None:
        match message:
            case Input():
                await self._desk.type(message)
            case WatchBoard():
                await self._watch_board(message)
            case WatchSession():
                await self._renew(self._person_now())
                await self._desk.open(message)
                for watcher in self._desk.watchers.values():
                    self._tasks.create_task(watcher.watch())
            case Take():
                await self._renew(self._person_now())
                await self._desk.take(message)
            case Ask():
                await self._desk.ask()
            case Release():
                await self._desk.release(message)
            case Resize():
                await self._desk.resize(message)

    async def _watch_board(self, message: WatchBoard) -> None:
        await self._renew(self._person_now())
        self._desk.person.require_list()
        if self._board is None:
            self._board = BoardView(self._desk.person, self._send, message)
            self._tasks.create_task(self._board.watch())

    async def _person_now(self) -> Person:
        """The person by a read that begins now, and so sees what was committed before."""
        return await in_database(person_of, self._key)

    async def _check(self) -> None:
        while True:
            await asyncio.sleep(seconds_to_check(self._key, CHECK_SECONDS))
            await self._renew(checks().person_of(self._key))

    async def _renew(self, reading: Awaitable[Person]) -> None:
        """Take over login and rights that are read anew. Raises what ends the connection."""
        try:
            async with asyncio.timeout(CHECK_SECONDS):
                person = await reading
        except LoginEnded:
            raise ConnectionEnded(
                4401, "LOGIN_ENDED", "your login has ended", is_final=True
            ) from None
        except TimeoutError:
            raise ConnectionEnded(4503, "RIGHTS_UNKNOWN", "your rights cannot be read") from None
        self._desk.person = person
        await self._desk.give_back_unless_allowed()
        try:
            self._desk.check()
            if self._board is not None:
                person.require_list()
                self._board.change_rights(person)
        except Forbidden as error:
            raise ConnectionEnded(4403, "FORBIDDEN", str(error), is_final=True) from None

    async def _leave(self) -> None:
        await self._stopping.wait()
        await asyncio.sleep(draining.delay())
        raise ConnectionEnded(4503, "SERVER_STOPPING", "the server is stopping")


def _end_of(group: ExceptionGroup[Exception]) -> ConnectionEnded:
    """The end that the first error of the loops means for the browser."""
    first: Exception = group
    while isinstance(first, ExceptionGroup):
        first = first.exceptions[0]
    if isinstance(first, ConnectionEnded):
        return first
    if isinstance(first, StorageUnavailable):
        return ConnectionEnded(4503, first.code, str(first))
    logger.error("a connection of the console failed", exc_info=first)
    return ConnectionEnded(4500, "INTERNAL_ERROR", "the server failed")
