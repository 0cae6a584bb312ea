"""Callers whose every action waits for a person, and the person who answers, or does not."""

import asyncio
import random
import time
from dataclasses import replace
from typing import Any, Final, Literal

from chaos.browser.pages import NoPageError
from chaos.clients.caller import Caller
from chaos.clients.conversation import Conversation, Place
from chaos.clients.interactive import Interactive
from chaos.clients.pipes import OneShot
from chaos.wire import Reply

Answer = Literal["approve", "deny", "nothing"]

# Each is chosen about so often.
_PLANS: Final[dict[Answer, int]] = {"approve": 8, "deny": 1, "nothing": 1}
_BY_COMMAND: Final = 0.05
_CHANGES_MIND: Final = 0.2
_PATIENCE_SECONDS: Final = 60.0
_THOUGHT_SECONDS: Final = 2.0
_PAUSE_SECONDS: Final = 0.5


class Person:
    """Answers the questions of one conversation: each once, at the page or by a command."""

    def __init__(self, place: Place, name: str, dice: random.Random) -> None:
        self._place, self._name, self._dice = place, name, dice
        self._asked: dict[int, asyncio.Task[None]] = {}

    def asked(self, approval_id: int) -> None:
        """Take note of a question; the person answers it after some thought."""
        if approval_id not in self._asked:
            plan = self._dice.choices(list(_PLANS), list(_PLANS.values()))[0]
            self._asked[approval_id] = asyncio.create_task(self._answer(approval_id, plan))

    async def rest(self) -> None:
        """Wait until everything that was asked is answered, or left alone."""
        await asyncio.gather(*self._asked.values())

    async def _answer(self, approval_id: int, plan: Answer) -> None:
        if plan == "nothing":
            return
        await asyncio.sleep(self._dice.random() * _THOUGHT_SECONDS)
        await self._say(approval_id, plan)
        if self._dice.random() < _CHANGES_MIND:
            await self._say(approval_id, "deny" if plan == "approve" else "approve")

    async def _say(self, approval_id: int, answer: Answer) -> None:
        """Give an answer until it is taken, or the question is over."""
        deadline = time.monotonic() + _PATIENCE_SECONDS
        by_command = self._dice.random() < _BY_COMMAND
        while time.monotonic() < deadline:
            self._note(approval_id, answer, "sent")
            try:
                told = await (self._command if by_command else self._page)(approval_id, answer)
            except (NoPageError, RuntimeError):
                await asyncio.sleep(_PAUSE_SECONDS)
            else:
                self._note(approval_id, answer, told)
                return

    async def _command(self, approval_id: int, answer: Answer) -> str:
        told = await self._place.people.manage("answer_approval", str(approval_id), f"--{answer}")
        return "done" if told.startswith("answered") else "over"

    async def _page(self, approval_id: int, answer: Answer) -> str:
        """Send the form of the question's page. A page without a form says that it is over."""
        path, operator = f"/approvals/{approval_id}/", self._place.people.operator
        page = await operator.get(path)
        if page.status == 200 and f'action="{path}answer/"' not in page.text:
            return "over"
        page = await operator.submit(f"{path}answer/", form=path, answer=answer, reason="no")
        if page.status != 302:
            raise NoPageError(f"HTTP {page.status}")
        return "done"

    def _note(self, approval_id: int, answer: Answer, state: str) -> None:
        self._place.history.note(
            "answer", session=self._name, approval=approval_id, answer=answer, state=state
        )


class HeldCaller(Caller):
    """A caller whose token acts only with a person's word. Ends are asked for by another one."""

    def __init__(self, place: Place, name: str, dice: random.Random, person: Person) -> None:
        held = replace(place.endpoint, token=place.people.held_token)
        super().__init__(held, place.history, name, dice)
        self._free = Caller(place.endpoint, place.history, name, dice)
        self._person = person

    async def once(self, tool: str, *, wait: float = 0.0, **arguments: Any) -> Reply:
        """Make one call; if it has to wait for a person, the person hears of it."""
        if arguments.get("terminate"):
            return await self._free.once(tool, wait=wait, **arguments)
        reply = await super().once(tool, wait=wait, **arguments)
        approval_id = reply.body.get("approval_id")
        if reply.code == "APPROVAL_PENDING" and isinstance(approval_id, int):
            self._person.asked(approval_id)
        return reply


class _Held(Conversation):
    """A conversation whose every action waits for a person."""

    def __init__(self, place: Place, name: str, dice: random.Random) -> None:
        super().__init__(place, name, dice)
        self._person = Person(place, name, dice)
        self.caller = HeldCaller(place, name, dice, self._person)

    async def hold(self) -> None:
        """Hold the conversation, and have no answer under way at its end."""
        try:
            await super().hold()
        finally:
            await self._person.rest()


class HeldTalk(_Held, Interactive):
    """A conversation on a terminal in which the start and every line wait for a person."""

    wait_seconds = 1.0


class HeldShot(_Held, OneShot):
    """A one-shot that waits for a person."""
