"""The recipe of a run: everything that decides it, in a file that a reader can run again."""

import json
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Final, Literal, Self

from chaos.faults.kinds import KINDS, PROFILES
from chaos.faults.schedule import Fault, schedule

Storage = Literal["sqlite", "postgresql"]

FILE: Final = "recipe.json"


@dataclass(frozen=True)
class Recipe:
    """The plan of a run: its load for so many seconds, and its faults.

    ``beyond``: how much longer than its wait a call may take while no fault is near. ``older``:
    the commit that a fault changes to and back from.
    """

    seed: int
    seconds: float
    callers: int
    storage: Storage
    beyond: float
    older: str
    faults: list[Fault] = field(default_factory=list)

    @property
    def is_scaled_out(self) -> bool:
        """True for two servers on PostgreSQL and Redis."""
        return self.storage == "postgresql"

    @classmethod
    def made(
        cls,
        seed: int,
        seconds: float,
        *,
        profile: str,
        callers: int,
        every: float,
        storage: Storage = "sqlite",
        beyond: float = 1.0,
        older: str = "HEAD~20",
    ) -> Self:
        """The recipe that a seed stands for."""
        kinds = [KINDS[name] for name in PROFILES[profile]]
        usable = [kind for kind in kinds if kind.storage in {None, storage}]
        faults = schedule(seed, seconds, usable, every=every)
        return cls(seed, seconds, callers, storage, beyond, older, faults)

    @classmethod
    def read(cls, path: Path) -> Self:
        """The recipe in a file."""
        stored = json.loads(path.read_text())
        return cls(**{**stored, "faults": [Fault(**fault) for fault in stored["faults"]]})

    def write(self, directory: Path) -> Path:
        """Write the recipe into a directory, or beside another; return its path."""
        path = directory / FILE if directory.is_dir() else directory.with_suffix(".shortest.json")
        path.write_text(json.dumps(asdict(self), indent=1) + "\n")
        return path

    def with_faults(self, faults: list[Fault]) -> "Recipe":
        """The same run with these faults only."""
        return replace(self, faults=faults)
