"""Conversations that people watch at pages of the console."""

import random

from chaos.clients.conversation import Place
from chaos.clients.interactive import Interactive
from chaos.clients.people.viewer import Viewer
from chaos.wire import Reply


class Watched(Interactive):
    """A conversation on a terminal with one page that sees all of it, and one that comes later."""

    def __init__(self, place: Place, name: str, dice: random.Random) -> None:
        super().__init__(place, name, dice)
        self._viewers: list[Viewer] = []

    def on_start(self, session_id: str) -> None:
        """Open a page from the first byte on."""
        self._viewers.append(Viewer(self.place, self.name, session_id, "all", 0))

    async def converse(self) -> None:
        """Hold the conversation, and close all pages at its end. Raises GaveUpError."""
        try:
            await super().converse()
        finally:
            for viewer in self._viewers:
                await viewer.close()

    async def turn(self, session_id: str, text: str) -> Reply:
        """Take a turn; a page that shows the screen as it is may be opened before."""
        if len(self._viewers) == 1 and self.dice.random() < 0.3:
            self._viewers.append(Viewer(self.place, self.name, session_id, "late", None))
        return await super().turn(session_id, text)

    async def finish(self, session_id: str, *streams: str) -> None:
        """Ask for the receipt, and wait until every page has shown everything."""
        await super().finish(session_id, *streams)
        for viewer in self._viewers:
            await viewer.finished(self.totals["stdout"])
