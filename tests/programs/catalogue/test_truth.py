"""The watcher against the catalogue: a part of it in each run, all of it with ``--long``.

It is played as root, as an ordinary user, and as an ordinary user whose daemon is another one's. No
program of another user than the daemon's is root's, so ``whom`` leaves out those that have to be.
"""

import shutil
from dataclasses import asdict
from pathlib import Path

import pytest

from tests.programs.catalogue.classes import CATALOGUE, EACH_DAY
from tests.programs.catalogue.figures import Figures
from tests.programs.catalogue.program import Program
from tests.programs.catalogue.servers import Places
from tests.support.accounts import Account, requires
from tests.support.hosts.truth import Judgement, as_user

# The first test of a long run installs what the catalogue needs.
pytestmark = pytest.mark.timeout(3600)
TWO_USERS_EACH_DAY = 1
"""The programs of each class that run under two users in each run of the tests."""


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Choose the programs: those of each day, or all of them with ``--long``."""
    is_long = metafunc.config.getoption("--long")
    whom = "user" if "ordinary" in metafunc.function.__name__ else "root"
    most = TWO_USERS_EACH_DAY if "keeper" in metafunc.fixturenames else EACH_DAY
    fitting = {
        kind: [program for program in programs if whom in program.whom.split("|")]
        for kind, programs in CATALOGUE.items()
    }
    chosen = [
        pytest.param(kind, program, id=f"{kind}: {program.name}")
        for kind, programs in fitting.items()
        for program in (programs if is_long else _everyday(programs)[:most])
    ]
    metafunc.parametrize(("kind", "program"), chosen)


def _everyday(programs: list[Program]) -> list[Program]:
    return [program for program in programs if program.everyday]


def _ready(program: Program, places: Places, home: Path) -> Program:
    placed = program.placed({**places, "home": str(home)})
    requires(*placed.needs)
    placed.write_files(home)
    return placed


def _played_as(
    user: Account, ready: Program, home: Path, keeper: Account | None = None
) -> list[Judgement]:
    for path in (home, *home.rglob("*")):
        shutil.chown(path, user.name, user.gid)

    def play() -> list[dict[str, str]]:
        return [asdict(judgement) for judgement in ready.judgements(str(home))]

    return [Judgement(**each) for each in as_user(user, play, keeper)]


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
    judgements = _played_as(user, _ready(program, places, home), home)
    figures.add(kind, f"{program.name} (user)", judgements)
    assert _wrong(judgements) == []


def test_truth_as_an_ordinary_user_under_the_daemon_of_another(
    kind: str,
    program: Program,
    places: Places,
    home: Path,
    figures: Figures,
    user: Account,
    keeper: Account,
) -> None:
    judgements = _played_as(user, _ready(program, places, home), home, keeper)
    figures.add(kind, f"{program.name} (two users)", judgements)
    assert _wrong(judgements) == []
