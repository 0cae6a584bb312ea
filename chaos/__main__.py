"""``python -m chaos``: run faults against the product, run a recipe again, shorten it, report.

``python -m chaos run --seed 1 --seconds 120``
``python -m chaos replay DIRECTORY/recipe.json``
"""

import argparse
import asyncio
import sys
from pathlib import Path

from chaos.faults.kinds import PROFILES
from chaos.recipe import FILE, Recipe
from chaos.report import summary
from chaos.run import Result, remove, run


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
    again = commands.add_parser("replay", help="a recipe again")
    again.add_argument("recipe", type=Path)
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
    )


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
    """Do what the command line asks for; 1 if a promise did not hold."""
    options = _arguments()
    return _told(asyncio.run(run(_recipe(options))), is_kept=options.keep)


if __name__ == "__main__":
    sys.exit(main())
