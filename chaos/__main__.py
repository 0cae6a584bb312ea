"""``python -m chaos``: run faults against the product, run a recipe again, shorten it, report.

``python -m chaos run --seed 1 --seconds 120``
``python -m chaos replay DIRECTORY/recipe.json``
``python -m chaos shorten DIRECTORY/recipe.json``
``python -m chaos mutate``
``python -m chaos report DIRECTORY``
"""

import argparse
import asyncio
import sys
from pathlib import Path

from chaos.faults.kinds import PROFILES
from chaos.faults.means import MissingMeansError
from chaos.faults.schedule import Fault
from chaos.judge.verdict import judged
from chaos.mutate import tried
from chaos.mutations import MUTATIONS
from chaos.recipe import FILE, Recipe
from chaos.report import summary, write_page
from chaos.run import Result, remove, run
from chaos.shorten import shortened


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m chaos")
    commands = parser.add_subparsers(dest="command", required=True)
    running = commands.add_parser("run", help="faults from a seed")
    running.add_argument("--seed", type=int, default=1)
    running.add_argument("--seconds", type=float, default=120.0)
    running.add_argument("--storage", choices=["sqlite", "postgresql"], default="sqlite")
    running.add_argument("--profile", choices=sorted(PROFILES), default="all")
    running.add_argument("--callers", type=int, default=8)
    running.add_argument("--every", type=float, default=4.0, help="seconds from fault to fault")
    running.add_argument("--beyond", type=float, default=1.0, help="seconds past a call's wait")
    running.add_argument("--older", default="HEAD~20", help="commit to change to and back from")
    again = commands.add_parser("replay", help="a recipe again")
    again.add_argument("recipe", type=Path)
    shorter = commands.add_parser("shorten", help="the fewest faults that still fail")
    shorter.add_argument("recipe", type=Path)
    page = commands.add_parser("report", help="write docs/reliability.md from kept runs")
    page.add_argument("directories", type=Path, nargs="+")
    wrong = commands.add_parser("mutate", help="mistakes in the product, each to be found")
    wrong.add_argument("name", nargs="*", help="words of the mistakes to make; default: all")
    for command in (running, again):
        command.add_argument("--keep", action="store_true", help="keep the directory of the run")
    return parser.parse_args()


def _recipe(options: argparse.Namespace) -> Recipe:
    if options.command == "replay":
        return Recipe.read(options.recipe)
    return Recipe.made(
        options.seed,
        options.seconds,
        profile=options.profile,
        callers=options.callers,
        every=options.every,
        storage=options.storage,
        beyond=options.beyond,
        older=options.older,
    )


async def _shorten(path: Path) -> int:
    """Run a recipe with fewer and fewer faults; print the shortest that breaks the same promise."""
    recipe = Recipe.read(path)
    whole = await run(recipe)
    if not whole.violations:
        print("the recipe breaks no promise this time")
        return 0
    rule = whole.violations[0].rule

    async def fails(faults: list[Fault]) -> bool:
        result = await run(recipe.with_faults(faults))
        is_so = rule in {violation.rule for violation in result.violations}
        print(f"{len(faults)} faults: {'fails' if is_so else 'holds'}", flush=True)
        remove(result)
        return is_so

    left = recipe.with_faults(await shortened(recipe.faults, fails))
    print(f"{rule}: {len(left.faults)} faults are left: python -m chaos replay {left.write(path)}")
    return 1


async def _mutate(words: list[str]) -> int:
    """Make mistakes in copies of the product; 1 if the judge does not find one of them."""
    missed = 0
    for mutation in MUTATIONS:
        if not all(word in mutation.name for word in words):
            continue
        trial = await tried(mutation)
        missed += not trial.is_caught
        print(trial, flush=True)
    return 1 if missed else 0


def _told(result: Result, *, is_kept: bool) -> int:
    print(summary(result.record))
    for violation in result.violations:
        print(f"VIOLATION {violation}")
    if result.violations:
        print(f"run it again: python -m chaos replay {result.directory / FILE}")
    elif not is_kept:
        remove(result)
    return 1 if result.violations else 0


def main() -> int:
    """Do what the command line asks for.

    1: a promise did not hold. 2: a means is missing.
    """
    options = _arguments()
    if options.command == "report":
        write_page([judged(directory) for directory in options.directories])
        return 0
    try:
        if options.command == "mutate":
            return asyncio.run(_mutate(options.name))
        if options.command == "shorten":
            return asyncio.run(_shorten(options.recipe))
        return _told(asyncio.run(run(_recipe(options))), is_kept=options.keep)
    except MissingMeansError as error:
        print(f"MISSING {error}")
        return 2


if __name__ == "__main__":
    sys.exit(main())
