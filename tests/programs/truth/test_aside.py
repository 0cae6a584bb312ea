"""Waits that no look at the sleepers of the terminal's foreground shows."""

import platform
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.programs.truth.writing import fixture, python
from tests.support.accounts import Account
from tests.support.hosts.truth import Ends, Scenario, Waits, Works, as_user

_LEFT_OVER = """
import fcntl, os, signal, subprocess, sys
if os.fork() == 0:
    fcntl.fcntl(0, fcntl.F_SETOWN, os.getpid())
    fcntl.fcntl(0, fcntl.F_SETFL, os.O_ASYNC | os.O_RDWR)
    os._exit(0)
os.wait()
print(end="Continue? ", flush=True)
subprocess.run(["sleep", "1"], stdin=subprocess.DEVNULL)
"""
ASIDE = [
    Scenario(
        "a program that a signal tells of input",
        fixture("reads_aside.py", "signal_of_input"),
        (Waits("name: $", "line", b"x\n", "heuristic"), Ends()),
    ),
    Scenario(
        "a program that works, and the signal was for another",
        python(_LEFT_OVER),
        (Works(0.8, after="Continue"), Ends()),
    ),
    Scenario(
        "a program that waits for a ring of requests",
        fixture("reads_aside.py", "ring"),
        # Where rings are forbidden the program reads.
        (Waits("name: $", "line", b"x\n", "kernel|kernel+quiet"), Ends()),
    ),
    Scenario(
        "a read of a pipe whose descriptor leads to the terminal by now",
        fixture("reads_aside.py", "moved_descriptor"),
        (Works(0.8, after="name"),),
    ),
    Scenario(
        "a process outside of the tree that also listens to a stranger",
        fixture("reads_aside.py", "outsider"),
        (Waits("name: $", "line", b"x\n", "heuristic"), Ends()),
    ),
    Scenario(
        "a program with a terminal of its own that reads the outer one",
        fixture("reads_aside.py", "wrapper"),
        (Waits("name: $", "line", b"x\n", "heuristic"), Ends()),
    ),
]
if platform.machine() == "x86_64":
    ASIDE += [
        Scenario(
            "a program that reads as one of 32 bits does",
            fixture("reads_aside.py", "read_of_32_bits"),
            (Waits("name: $", "line", b"x\n"), Ends()),
        ),
        Scenario(
            "a sleep of 32 bits that was stopped and continued",
            fixture("reads_aside.py", "stopped_sleep_of_32_bits"),
            (Works(0.8, after="name"), Ends()),
        ),
        Scenario(
            "a sleep of 32 bits in a program of 64 bits",
            fixture("reads_aside.py", "stopped_sleep_on_a_high_stack"),
            (Works(0.8, after="name"), Ends()),
        ),
    ]
_ASKS = ("bash", "-c", "read -p 'name: ' x; sleep 0.3; read -p 'age: ' y")
_STEPS = (Waits("name: $", "line", b"x\n"), Waits("age: $", "line", b"4\n"), Ends())
NAMESPACES = [
    Scenario("of processes", ("unshare", "-r", "--fork", "--pid", "--mount-proc", *_ASKS), _STEPS),
    Scenario(
        "of terminals",
        (
            *("unshare", "-r", "--fork", "--pid", "--mount", "sh", "-c"),
            'mount -t devpts -o newinstance,ptmxmode=666 none /dev/pts && exec "$@"',
            *("sh", *_ASKS),
        ),
        _STEPS,
    ),
    Scenario("of files", ("unshare", "-r", "--root=/", *_ASKS), _STEPS),
]


def named(scenarios: list[Scenario]) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("scenario", scenarios, ids=[each.name for each in scenarios])


@named(ASIDE)
def test_a_wait_aside_as_whoever_runs_the_tests(scenario: Scenario, home: Path) -> None:
    assert scenario.play(str(home)) is None


@named(ASIDE)
def test_a_wait_aside_as_an_ordinary_user(scenario: Scenario, home: Path, user: Account) -> None:
    shutil.chown(home, user.name)
    assert as_user(user, lambda: scenario.play(str(home))) is None


@named(ASIDE)
def test_a_wait_aside_under_the_daemon_of_another(
    scenario: Scenario, home: Path, user: Account, keeper: Account
) -> None:
    shutil.chown(home, user.name)
    assert as_user(user, lambda: scenario.play(str(home)), keeper) is None


@named(NAMESPACES)
def test_a_wait_in_another_namespace_is_seen(scenario: Scenario, home: Path) -> None:
    if subprocess.run([*scenario.argv[:-3], "true"], check=False, capture_output=True).returncode:
        pytest.skip("this machine refuses the namespace")
    assert scenario.play(str(home)) is None


def test_a_peer_that_says_nothing_until_it_gets_a_line_is_waited_for(home: Path) -> None:
    asks = Waits(r"Connected\.\r\n$", "line", b"x\n", "heuristic")
    program = fixture("reads_aside.py", "peer")
    assert Scenario("peer", program, (asks, Ends())).play(str(home)) is None
