"""A page that shows one session: after a break it goes on with the byte where it was."""

import asyncio
import random
from contextlib import suppress
from typing import Any, Final

from chaos.browser.socket import BrokenError, Socket, opened
from chaos.clients.conversation import Place
from chaos.wire import Json

_PAUSE_SECONDS: Final = 0.5
_PATIENCE_SECONDS: Final = 90.0
# The share of messages after which the page is loaded anew.
_RELOADED: Final = 0.01
_TAIL_BYTES: Final = 400


class Viewer:
    """Keeps what a page is shown of a terminal, byte by byte, with every break in between.

    ``who`` tells the pages of a session apart. ``offset``: 0 to be shown everything, None to be
    shown the screen as it is.
    """

    def __init__(
        self, place: Place, name: str, session_id: str, who: str, offset: int | None
    ) -> None:
        self.name, self.session_id = name, session_id
        self.at = offset
        self.tail = b""
        self.session: Json = {}
        self.socket: Socket | None = None
        self.changed = asyncio.Condition()
        self._place, self._who = place, who
        self._dice = random.Random(f"{name}/{who}")
        self._events: list[list[object]] = []
        self._bytes = bytearray()
        self._task = asyncio.create_task(self._watch())

    async def finished(self, total: int) -> None:
        """Wait until everything of an ended session was shown; write down what was.

        A page that stays behind is written down as it is.
        """
        with suppress(TimeoutError):
            async with asyncio.timeout(_PATIENCE_SECONDS):
                await self.until(lambda: self.at == total)
        await self.close()
        file = f"{self.name}.{self._who}"
        (self._place.stored / file).write_bytes(self._bytes)
        self._note("shown", file=file, total=total, events=self._events)

    async def close(self) -> None:
        """Close the page, and connect no more."""
        self._task.cancel()
        await asyncio.gather(self._task, return_exceptions=True)

    async def until(self, is_so: Any) -> None:
        """Wait until this is so; it is looked at after each message."""
        async with self.changed:
            await self.changed.wait_for(is_so)

    async def on_open(self, socket: Socket) -> None:
        """Do what a page does when its connection is there again. Raises BrokenError."""

    async def on_message(self, message: Json) -> None:
        """Hear a message that is not about output. Raises BrokenError."""

    async def _watch(self) -> None:
        while True:
            try:
                async with opened(self._place.people.operator) as socket:
                    await self._show(socket)
            except BrokenError:
                pass
            finally:
                if self.socket is not None:
                    self._note("page", state="broken")
                self.socket = None
            async with self.changed:
                self.changed.notify_all()
            await asyncio.sleep(_PAUSE_SECONDS * (0.5 + self._dice.random()))

    async def _show(self, socket: Socket) -> None:
        """Show the session until the connection breaks, or the page is loaded anew."""
        from_here = {} if self.at is None else {"offset": self.at}
        await socket.send("watch_session", session_id=self.session_id, **from_here)
        self._events.append(["open", self.at])
        self._note("page", state="open")
        await self.on_open(socket)
        self.socket = socket
        while self._dice.random() > _RELOADED:
            message = await socket.receive()
            await self._hear(socket, message)
            async with self.changed:
                self.changed.notify_all()

    async def _hear(self, socket: Socket, message: Json) -> None:
        kind, offset = message["type"], message.get("offset")
        if kind == "output":
            data = message["data"]
            assert isinstance(data, bytes)
            self._events.append([kind, offset, len(data)])
            self._bytes += data
            self.tail = (self.tail + data)[-_TAIL_BYTES:]
            await self._shown(socket, offset, len(data))
        elif kind == "begin":
            self._events.append([kind, offset, message["skipped"]])
            self.tail = b""
            await self._shown(socket, offset, 0)
        elif kind == "gap":
            self._events.append([kind, offset, message["to_offset"]])
            await self._shown(socket, message["to_offset"], 0)
        elif kind == "session":
            self.session = message
        elif kind in {"closed", "refused"} and _is_final(message):
            self._note("shut_out", code=message["code"], text=message["message"])
        await self.on_message(message)

    async def _shown(self, socket: Socket, offset: object, size: int) -> None:
        assert isinstance(offset, int)
        self.at = offset + size
        await socket.send("seen", offset=self.at)

    def _note(self, kind: str, **what: object) -> None:
        self._place.history.note(kind, session=self.name, who=self._who, **what)


def _is_final(message: Json) -> bool:
    """True if the page is told that it will not be shown this session."""
    return bool(message.get("is_final")) or message.get("about") == "watch_session"
