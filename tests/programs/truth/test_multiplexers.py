"""A multiplexer always listens, so the programs on its terminals say whether input is awaited."""

import shutil
from pathlib import Path

import pytest

from tests.programs.truth.writing import fixture, python
from tests.support.accounts import Account, requires
from tests.support.hosts.truth import Ends, Scenario, Waits, Works, as_user

_TMUX = ("env", "TMUX_TMPDIR={home}", "tmux", "-f", "/dev/null", "new-session")
# In a directory of its own: the usual one may belong to a former account of the same name.
_SCREEN = ("env", "SCREENDIR={home}", "screen", "-c", "/dev/null")
_ASK_WORK_ASK = ("sh", "-c", "printf 'name: '; read x; sleep 1; printf 'age: '; read y")
_ASK_BESIDE = (
    # The question waits for the other terminal: until that one is there, tmux has nothing but it.
    *_TMUX,
    "until test -e {home}/begun; do sleep 0.01; done; printf 'name: '; read x; touch {home}/done",
    *(";", "split-window", "-d"),
)
_WORK = "touch {home}/begun; until test -e {home}/done; do sleep 0.1; done"
# PR_SET_DUMPABLE is 4. Only root may then see which calls the program is in.
_WORK_UNSEEN = python(
    "import ctypes, os, time\n"
    "ctypes.CDLL(None).prctl(4, 0)\n"
    "open('{home}/begun', 'w').close()\n"
    "while not os.path.exists('{home}/done'): time.sleep(0.1)"
)
_READS_FOR_A_TIME = python(
    "import os, termios\n"
    "modes = termios.tcgetattr(0)\n"
    "modes[3] &= ~(termios.ICANON | termios.ECHO)\n"
    "modes[6][termios.VMIN], modes[6][termios.VTIME] = 0, 8\n"
    "termios.tcsetattr(0, termios.TCSANOW, modes)\n"
    "print(end='Quick? ', flush=True)\n"
    "while not os.read(0, 9): pass"
)
PANES = [
    *(
        Scenario(
            f"{name}: a question, work, and a question",
            (*multiplexer, *_ASK_WORK_ASK),
            (
                Waits("name: ", "screen", b"x\n"),
                Waits("age: ", "screen", b"4\n"),
                Ends(None),
            ),
            needs=(name,),
        )
        for name, multiplexer in (("tmux", _TMUX), ("screen", _SCREEN))
    ),
    Scenario(
        "tmux: a reader beside work",
        (*_TMUX, *fixture("works_beside.py", "beside_reader while it does: compute", "Well? ")),
        (Works(0.4, after="Well"), Ends(None)),
        needs=("tmux",),
    ),
    Scenario(
        "tmux: a read that returns without input",
        (*_TMUX, *_READS_FOR_A_TIME),
        (Waits(r"Quick\? ", "screen", b"x\n", "kernel+quiet"), Ends(None)),
        needs=("tmux",),
    ),
    Scenario(
        "tmux: one of two terminals works",
        (*_ASK_BESIDE, _WORK),
        (Waits("name: ", "screen", b"x\n", "heuristic"), Ends(None)),
        needs=("tmux",),
    ),
    Scenario(
        "tmux: one of two terminals works, and may not be inspected",
        (*_ASK_BESIDE, *_WORK_UNSEEN),
        (Waits("name: ", "screen", b"x\n", "heuristic"), Ends(None)),
        needs=("tmux",),
    ),
]


def named(scenarios: list[Scenario]) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("scenario", scenarios, ids=[each.name for each in scenarios])


@named(PANES)
def test_panes_as_whoever_runs_the_tests(scenario: Scenario, home: Path) -> None:
    requires(*scenario.needs)
    assert scenario.play(str(home)) is None


@named(PANES)
def test_panes_as_an_ordinary_user(scenario: Scenario, home: Path, user: Account) -> None:
    requires(*scenario.needs)
    shutil.chown(home, user.name)
    assert as_user(user, lambda: scenario.play(str(home))) is None


@named(PANES)
def test_panes_under_the_daemon_of_another(
    scenario: Scenario, home: Path, user: Account, keeper: Account
) -> None:
    requires(*scenario.needs)
    shutil.chown(home, user.name)
    assert as_user(user, lambda: scenario.play(str(home)), keeper) is None
