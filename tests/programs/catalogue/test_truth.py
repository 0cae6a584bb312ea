"""The watcher against the catalogue: a part of it in each run, all of it with ``--long``."""

import shutil
from dataclasses import asdict
from pathlib import Path

import pytest

from tests.programs.catalogue.classes import CATALOGUE
from tests.programs.catalogue.figures import Figures
from tests.programs.catalogue.program import Program
from tests.programs.catalogue.servers import Places
from tests.support.accounts import Account, requires
from tests.support.hosts.truth import Judgement, as_user


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Choose the programs: those of each day, or all of them with ``--long``."""
    is_long = metafunc.config.getoption("--long")
    whom = "user" if "ordinary" in metafunc.function.__name__ else "root"
    chosen = [
        pytest.param(kind, program, id=f"{kind}: {program.name}")
        for kind, programs in CATALOGUE.items()
        for program in programs
        if (is_long or program.everyday) and whom in program.whom.split("|")
    ]
    metafunc.parametrize(("kind", "program"), chosen)


def _ready(program: Program, places: Places, home: Path) -> Program:
    placed = program.placed({**places, "home": str(home)})
    requires(*placed.needs)
    placed.write_files(home)
    return placed


def _wrong(judgements: list[Judgement]) -> list[str]:
    return [judgement.said for judgement in judgements if judgement.fault]


def test_truth_as_whoever_runs_the_tests(
    kind: str, program: Program, places: Places, home: Path, figures: Figures
) -> None:
    ready = _ready(program, places, home)
    judgements = list(ready.judgements(str(home)))
    figures.add(kind, program.name, judgements)
    assert _wrong(judgements) == []


def test_truth_as_an_ordinary_user(
    kind: str, program: Program, places: Places, home: Path, figures: Figures, user: Account
) -> None:
    ready = _ready(program, places, home)
    for path in (home, *home.rglob("*")):
        shutil.chown(path, user.name, user.gid)

    def play() -> list[dict[str, str]]:
        return [asdict(judgement) for judgement in ready.judgements(str(home))]

    judgements = [Judgement(**each) for each in as_user(user, play)]
    figures.add(kind, f"{program.name} (user)", judgements)
    assert _wrong(judgements) == []
