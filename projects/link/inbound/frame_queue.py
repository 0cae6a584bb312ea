"""The frames of one connection that wait to be committed, in their order."""

import asyncio
from dataclasses import dataclass
from typing import Final

import msgspec

from controller_client.protocol.messages import FromController, InteractiveOutput
from projects.link.inbound.refusals import TooManyFrames
from projects.link.inbound.session_draft import is_one_step

MAX_FRAMES: Final = 2048
"""The window bounds output; this number bounds everything else that a peer may pile up."""
MAX_JOINED_BYTES: Final = 8 * 1024
CROWDED_FRAMES: Final = MAX_FRAMES // 2
"""With so many frames waiting, pieces are joined that were printed at different times."""


class FrameQueue:
    """A queue of frames that joins adjoining output of a session.

    A session that prints a little at a time sends a frame for each piece. Because its frames are
    joined here, a host that keeps to its window never has too many frames waiting, however long
    nothing can be committed.
    """

    def __init__(self) -> None:
        self._cells: asyncio.Queue[_Cell] = asyncio.Queue()
        self._newest: dict[str, _Cell] = {}

    def put(self, frame: FromController) -> None:
        """Add a frame at the end. Raises TooManyFrames."""
        session_id: str | None = getattr(frame, "session_id", None)
        newest = None if session_id is None else self._newest.get(session_id)
        is_crowded = self._cells.qsize() >= CROWDED_FRAMES
        if newest and (joined := _joined(newest.frame, frame, is_crowded=is_crowded)):
            newest.frame = joined
            return
        if self._cells.qsize() >= MAX_FRAMES:
            raise TooManyFrames(MAX_FRAMES)
        cell = _Cell(frame)
        self._cells.put_nowait(cell)
        if session_id is not None:
            self._newest[session_id] = cell

    async def get(self) -> FromController:
        """Remove and return the next frame, as soon as there is one."""
        return self._taken(await self._cells.get())

    def take(self, count: int) -> list[FromController]:
        """Remove and return the frames that are there already, at most ``count``."""
        return [
            self._taken(self._cells.get_nowait()) for _ in range(min(count, self._cells.qsize()))
        ]

    def _taken(self, cell: "_Cell") -> FromController:
        session_id = getattr(cell.frame, "session_id", None)
        if session_id is not None and self._newest.get(session_id) is cell:
            del self._newest[session_id]
        return cell.frame


@dataclass(slots=True, eq=False)
class _Cell:
    frame: FromController


def _joined(
    first: FromController, second: FromController, *, is_crowded: bool
) -> InteractiveOutput | None:
    """Both frames as one, if the second is output that begins where the first ends; else None.

    The newer one of two verdicts about the terminal counts. A frame has the time of its first byte,
    so what was printed later stays apart, unless the queue ``is_crowded``.
    """
    if not (isinstance(first, InteractiveOutput) and isinstance(second, InteractiveOutput)):
        return None
    is_next = second.stream == first.stream and second.offset == first.offset + len(first.data)
    if not is_next or len(first.data) + len(second.data) > MAX_JOINED_BYTES:
        return None
    if not (is_crowded or is_one_step(first.at, second.at)):
        return None
    judged = second if second.terminal is not None else first
    return msgspec.structs.replace(
        first,
        data=first.data + second.data,
        terminal=judged.terminal,
        terminal_at=judged.terminal_at,
    )
