"""All conversations have these in common: a name, a caller, and a look at the end."""

import asyncio
import base64
import random
import shlex
import time
from abc import ABC, abstractmethod
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from chaos.browser.pages import People
from chaos.clients.caller import Caller, GaveUpError
from chaos.history import History
from chaos.plant.processes import arguments_of, is_alive
from chaos.truth import truth_of
from chaos.wire import Endpoint, Json, Reply

_PROGRAM: Final = Path(__file__).resolve().parents[1] / "program.py"
_PYTHON: Final = "/usr/bin/python3"
_PAGE_BYTES: Final = 262_144
_STUCK_SECONDS: Final = 240.0


@dataclass(frozen=True)
class Place:
    """The place of conversations: the endpoint, and the directories of the run."""

    endpoint: Endpoint
    history: History
    programs: Path
    stored: Path
    logs: Path
    is_over: asyncio.Event
    people: People


class Conversation(ABC):
    """One session of one family of tools, from its start until everything it left was read."""

    def __init__(self, place: Place, name: str, dice: random.Random) -> None:
        self.place, self.name, self.dice = place, name, dice
        self.caller = Caller(place.endpoint, place.history, name, dice)
        self.totals: dict[str, int] = {}
        self._began = time.monotonic()

    async def hold(self) -> None:
        """Hold the conversation. One that nobody answers is written down, and no error here."""
        try:
            await self.converse()
        except GaveUpError:
            self.place.history.note("left", session=self.name)

    @abstractmethod
    async def converse(self) -> None:
        """Start a session, use it, end it. Raises GaveUpError."""

    def command(self, mode: str, *arguments: object) -> str:
        """The command line of the program that checks itself."""
        words = [_PYTHON, "-S", "-E", str(_PROGRAM), mode, str(self.place.programs), self.name]
        return shlex.join([*words, *map(str, arguments)])

    def is_over(self) -> bool:
        """True if the run wants no more turns."""
        return self.place.is_over.is_set()

    def is_stuck(self) -> bool:
        """True, and written down, if this conversation has made no progress for far too long."""
        is_so = time.monotonic() - self._began > _STUCK_SECONDS
        if is_so:
            self.place.history.note("stuck", session=self.name)
        return is_so

    def progress(self) -> None:
        """Say that this conversation gets on."""
        self._began = time.monotonic()

    def told_end(self) -> None:
        """Write down which processes of the program live although its end was told."""
        pids = truth_of(self.place.programs, self.name).pids
        alive = [pid for pid in pids if self.name in arguments_of(pid) and is_alive(pid)]
        self.place.history.note("told_end", session=self.name, alive=alive)

    async def finish(self, session_id: str, *streams: str) -> None:
        """Ask for the receipt of an ended session, and keep everything it printed.

        Raises GaveUpError.
        """
        self.told_end()
        await self.caller.read("get_session", session_id=session_id)
        for stream in streams:
            await self._keep(session_id, stream)

    async def _keep(self, session_id: str, stream: str) -> None:
        data, gaps, offset, before, total = bytearray(), list[object](), 0, -1, 1
        while before < offset < total:
            page = await self.caller.read(
                "read_session_output",
                session_id=session_id,
                stream=stream,
                view="raw",
                offset=offset,
                max_bytes=_PAGE_BYTES,
            )
            data += base64.b64decode(str(page.body["output_base64"]))
            gaps += _list(page.body["gaps"])
            before, offset = offset, _int(page.body["next_offset"])
            total = _int(page.body["total_bytes"])
        self.totals[stream] = total
        suffix = {"stdout": "out", "stderr": "err"}[stream]
        (self.place.stored / f"{self.name}.{suffix}").write_bytes(data)
        self.place.history.note("stored", session=self.name, stream=suffix, total=total, gaps=gaps)


def _list(value: object) -> list[object]:
    assert isinstance(value, list)
    return value


def _int(value: object) -> int:
    assert isinstance(value, int)
    return value


def has(reply: Reply, **wanted: object) -> bool:
    """True for a result that has these values."""
    return reply.outcome == "ok" and all(reply.body.get(key) == is_ for key, is_ in wanted.items())


def text_of(body: Json, key: str) -> str:
    """A text of a result; empty if it has none."""
    value = body.get(key)
    return value if isinstance(value, str) else ""


def number_of(body: Json, key: str) -> int:
    """A whole number of a result; 0 if it has none."""
    value = body.get(key)
    return value if isinstance(value, int) else 0
