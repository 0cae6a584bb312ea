"""The load of a run: several callers side by side, each with one conversation after the other."""

import asyncio
import random
from typing import Final

from chaos.clients.conversation import Conversation, Place
from chaos.clients.interactive import Interactive
from chaos.clients.monitor import Monitor
from chaos.clients.people.approvals import HeldShot, HeldTalk
from chaos.clients.people.taken import Taken
from chaos.clients.people.watched import Watched
from chaos.clients.pipes import Background, Job, OneShot

_FAMILIES: Final[dict[str, tuple[type[Conversation], int]]] = {
    "taken": (Taken, 2),
    "watched": (Watched, 2),
    "held": (HeldTalk, 1),
    "back": (Background, 2),
    "job": (Job, 1),
    "log": (Monitor, 1),
    "talk": (Interactive, 6),
    "shot": (OneShot, 4),
    "asked": (HeldShot, 1),
}
_WITH_PEOPLE: Final = {"taken", "watched", "held", "asked"}


async def load(place: Place, seed: int, callers: int, *, has_people: bool = True) -> None:
    """Hold conversations until the run is over, and each of them to its end.

    With ``has_people`` some of them have people who watch, take over, or are asked.
    """
    families = [name for name in _FAMILIES if has_people or name not in _WITH_PEOPLE]
    async with asyncio.TaskGroup() as group:
        for number in range(callers):
            group.create_task(_caller(place, random.Random(f"{seed}/{number}"), number, families))


async def _caller(place: Place, dice: random.Random, number: int, families: list[str]) -> None:
    weights = [_FAMILIES[name][1] for name in families]
    count = 0
    while not place.is_over.is_set():
        # The first conversations of all callers are of every family there is.
        first = families[number % len(families)]
        kind = first if count == 0 else dice.choices(families, weights)[0]
        name = f"{kind}-{number}-{count}"
        await _FAMILIES[kind][0](place, name, random.Random(f"{name}/{dice.random()}")).hold()
        count += 1
        await asyncio.sleep(dice.random() * 0.2)
