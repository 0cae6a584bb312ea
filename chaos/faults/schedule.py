"""The faults of a run and their times, made from a seed alone: the same seed, the same schedule."""

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

_WARM_SECONDS: Final = 4.0
# After a fault its target is left alone for a while, so that it can be seen to recover.
_REST_SECONDS: Final = 3.0


@dataclass(frozen=True, kw_only=True)
class Kind:
    """A kind of fault: what it harms, and for how long.

    Faults that harm the same target never overlap. ``needs`` names a means that the machine must
    have, ``storage`` the only storage on which it can be done.
    """

    name: str
    targets: frozenset[str]
    shortest: float = 0.0
    longest: float = 0.0
    needs: str | None = None
    storage: str | None = None


@dataclass(frozen=True, kw_only=True)
class Fault:
    """One fault: when it begins, how long it lasts, and a number that chooses its victim."""

    number: int
    kind: str
    at: float
    seconds: float
    choice: int


def schedule(
    seed: int, seconds: float, kinds: Sequence[Kind], *, every: float = 4.0
) -> list[Fault]:
    """The faults of a run of so many seconds, one about ``every`` so many of them.

    Each kind comes once before any comes twice, as far as there is time.
    """
    dice = random.Random(f"schedule/{seed}")
    free_at: dict[str, float] = {}
    faults: list[Fault] = []
    waiting: list[Kind] = []
    at = _WARM_SECONDS
    while kinds and at < seconds:
        if not waiting:
            waiting = dice.sample(list(kinds), len(kinds))
        kind = next((each for each in waiting if _is_free(each, free_at, at)), None)
        if kind is not None:
            waiting.remove(kind)
            lasts = round(dice.uniform(kind.shortest, kind.longest), 2)
            faults.append(
                Fault(
                    number=len(faults),
                    kind=kind.name,
                    at=round(at, 2),
                    seconds=lasts,
                    choice=dice.getrandbits(16),
                )
            )
            for target in kind.targets:
                free_at[target] = at + lasts + _REST_SECONDS
        at += dice.uniform(0.25, 1.75) * every
    return faults


def _is_free(kind: Kind, free_at: Mapping[str, float], at: float) -> bool:
    return all(free_at.get(target, 0.0) <= at for target in kind.targets)
