"""Runs against copies of the product with a mistake in each, which the judge has to find."""

import asyncio
import os
import shutil
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from chaos.faults.kinds import KINDS
from chaos.faults.schedule import schedule
from chaos.mutations import Mutation
from chaos.plant import processes
from chaos.plant.processes import Command
from chaos.plant.product import ROOT
from chaos.recipe import Recipe
from chaos.run import remove, run

_SEEDS: Final = (1, 2, 3)
"""A mistake that needs an answer to get lost does not show in every short run."""
_SECONDS: Final = 25.0
_CALLERS: Final = 6
_EVERY_SECONDS: Final = 5.0
# Other work may go on beside the runs, so how long a call takes says nothing.
_BEYOND_SECONDS: Final = 300.0


@dataclass(frozen=True)
class Trial:
    """The outcome of a run against a mistake: the rules that it broke, its calls and its time."""

    mutation: Mutation
    seed: int
    rules: list[str]
    calls: int
    seconds: float

    @property
    def is_caught(self) -> bool:
        """True if the judge found the mistake by the rule that it breaks."""
        return self.mutation.rule in self.rules

    def __str__(self) -> str:
        told = "caught" if self.is_caught else "MISSED"
        size = f"seed {self.seed}: {self.calls} calls in {self.seconds:.0f} s"
        return f"{told}: {self.mutation.name} ({', '.join(self.rules)}; {size})"


async def tried(mutation: Mutation) -> Trial:
    """Run short loads against a copy of the product with the mistake until one is caught."""
    for seed in _SEEDS:
        trial = await _tried(mutation, seed)
        if trial.is_caught:
            break
    return trial


async def _tried(mutation: Mutation, seed: int) -> Trial:
    began = time.monotonic()
    tree = Path(await asyncio.to_thread(tempfile.mkdtemp, prefix="holdline-mutation-"))
    try:
        await _copy(tree)
        mutation.make(tree)
        result = await run(_recipe(mutation, seed), tree)
        remove(result)
        rules = sorted({violation.rule for violation in result.violations})
        return Trial(mutation, seed, rules, len(result.record.calls), time.monotonic() - began)
    finally:
        await asyncio.to_thread(shutil.rmtree, tree, ignore_errors=True)


async def _copy(tree: Path) -> None:
    """Copy what is committed; the package of a mutation is read from the copy, too."""
    archive = tree.with_suffix(".tar")
    for arguments in (
        ["git", "archive", "--output", str(archive), "HEAD"],
        ["tar", "-xf", str(archive), "-C", str(tree)],
    ):
        await processes.run(Command(arguments, dict(os.environ), ROOT))
    archive.unlink()


def _recipe(mutation: Mutation, seed: int) -> Recipe:
    kinds = [KINDS[name] for name in mutation.faults]
    faults = schedule(seed, _SECONDS, kinds, every=_EVERY_SECONDS)
    return Recipe(seed, _SECONDS, _CALLERS, "sqlite", _BEYOND_SECONDS, "HEAD", faults)
