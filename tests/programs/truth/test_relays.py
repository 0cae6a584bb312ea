"""A relay joins two terminals. Behind one that takes no input, nobody waits for input."""

import shutil
from pathlib import Path

import pytest

from tests.programs.truth.writing import QUIET, fixture, sh
from tests.support.accounts import Account, requires
from tests.support.hosts.truth import Ends, Scenario, Waits, Works, as_user

_ASK = "spawn -noecho bash -c {read -p Name: x; echo got}"
PASSING_ON = [
    *(
        Scenario(way, fixture("relays.py", way), (Waits("Name:$", "line", b"x\n"), Ends(None)))
        for way in ("one_loop", "two_threads", "two_processes")
    ),
    Scenario(
        "a person in a script of expect",
        sh(f"exec expect -c '{_ASK}; interact'"),
        (Waits("Name:$", "line", b"x\n"), Ends()),
        needs=("expect",),
    ),
    Scenario(
        "script in script",
        sh("exec script -qc 'script -qc \"read -p Name: x\" /dev/null' /dev/null"),
        (Waits("Name:$", "line", b"x\n"), Ends()),
        needs=("script",),
    ),
    Scenario(
        "an answer through a pipe",
        sh("cat | script -qc 'bash -c \"read -p Name: x\"' /dev/null"),
        (Waits("Name:$", "line", b"x\n"), Waits("x\r\n", "line", b"\x04"), Ends()),
        needs=("script",),
    ),
]
DEAF = [
    *(
        Scenario(way, fixture("relays.py", way), (Works(0.8), Ends()))
        for way in ("deaf_for_a_time", "deaf_beside_a_thread")
    ),
    *(
        Scenario(
            f"expect waits for {what}",
            sh(f"exec expect -c 'set timeout 1; {_ASK}; {then}'"),
            (Works(0.8, after="Name:"), Ends()),
            needs=("expect",),
        )
        for what, then in (
            ("another text", "expect Nothing; send a\\r; expect eof"),
            ("the end", "expect eof"),
        )
    ),
]
GOING_ON = [
    Scenario(
        "a time to listen",
        fixture("relays.py", "listening_for_a_time"),
        (Waits("Name:$", "line", b"x\n", QUIET), Ends()),
    ),
    Scenario(
        "a stranger's order",
        fixture("relays.py", "listening_to_a_stranger"),
        (Waits("Name:$", "line", b"x\n", "heuristic"), Ends(None)),
    ),
]
RELAYS = PASSING_ON + DEAF + GOING_ON


def named(scenarios: list[Scenario]) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("scenario", scenarios, ids=[each.name for each in scenarios])


@named(RELAYS)
def test_relays_as_whoever_runs_the_tests(scenario: Scenario, home: Path) -> None:
    requires(*scenario.needs)
    assert scenario.play(str(home)) is None


@named(RELAYS)
def test_relays_as_an_ordinary_user(scenario: Scenario, home: Path, user: Account) -> None:
    requires(*scenario.needs)
    shutil.chown(home, user.name)
    assert as_user(user, lambda: scenario.play(str(home))) is None


@named(RELAYS)
def test_relays_under_the_daemon_of_another(
    scenario: Scenario, home: Path, user: Account, keeper: Account
) -> None:
    requires(*scenario.needs)
    shutil.chown(home, user.name)
    assert as_user(user, lambda: scenario.play(str(home)), keeper) is None
