"""A program that reads with one part of itself, and works with another, is at work.

Only a question can make up for that, and only as a guess after a longer silence.
"""

import shlex
import shutil
from pathlib import Path

import pytest

from controller_client.system import prctl
from tests.programs.truth.writing import fixture, python
from tests.support.accounts import Account
from tests.support.hosts.truth import Ends, Scenario, Waits, Works, as_user

WAYS = (
    *(
        f"{way} while it does: {work}"
        for way in ("beside_reader", "third_thread", "beside_loop")
        for work in ("pause", "compute", "connection", "child")
        # A thread that only pauses may keep house.
        if (way, work) != ("third_thread", "pause")
    ),
    "below_parent while it does: compute",
    "child_signal while it does: nothing",
    "own_pipe while it does: nothing",
)
AT_WORK = [
    Scenario(
        f"{text or 'nothing'}: {way}",
        fixture("works_beside.py", way, text),
        (Works(0.4, after=text.replace("?", r"\?")), Ends(None)),
    )
    for text in ("", "Loading cache", "Continue? ")
    for way in WAYS
]

_ASKS_BESIDE = """
import threading
done = threading.Event()
def {work}
thread = threading.Thread(target=work)
thread.start()
input("line> ")
done.set()
"""
_WAITS_FOR_STRANGERS = """
import select, socket, sys
server = socket.create_server(("127.0.0.1", 0))
near = socket.create_connection(server.getsockname())
print(end="name> ", flush=True)
poll = select.poll()
poll.register(0, select.POLLIN)
poll.register(near, select.POLLIN)
poll.poll()
"""
ASKS = [
    Scenario(
        "a question beside a thread that computes",
        python(_ASKS_BESIDE.format(work="work():\n while not done.is_set(): sum(range(1000))")),
        (Waits("line> $", "line", b"x\n", "heuristic"), Ends()),
    ),
    Scenario(
        "a question beside a thread that keeps house",
        python(_ASKS_BESIDE.format(work="work():\n while not done.wait(0.05): pass")),
        (Waits("line> $", "line", b"x\n", "kernel+quiet"), Ends()),
    ),
    Scenario(
        "a question beside a child that waits for its parent",
        fixture("works_beside.py", "idle_child while it does: nothing", "name> "),
        (Waits("name> $", "line", b"x\n", "kernel+quiet"), Ends()),
    ),
    Scenario(
        "a question of a program that also listens to another",
        python(_WAITS_FOR_STRANGERS),
        (Waits("name> $", "line", b"x\n", "heuristic"), Ends()),
    ),
]

# The kernel shows nothing of the calls of such a process to its own user.
_HIDES = """
import ctypes, os, signal, threading, time
def hides():
    ctypes.CDLL(None).prctl(4, 0)
def computes(seconds):
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        pass
def forks(act):
    child = os.fork()
    if child == 0:
        act()
        os._exit(0)
    return child
{beside}
print(end="name> ", flush=True)
os.read(0, 9)
{end}
os._exit(0)
"""
_SLEEPS = "child = forks(lambda: (hides(), time.sleep(60)))"
_KILLS = "os.kill(child, signal.SIGKILL)"
_THREAD = "hides(); threading.Thread(target=time.sleep, args=(60,)).start()"
HIDDEN = [
    Scenario(
        f"a question {what}",
        python(_HIDES.format(beside=beside, end=end)),
        (*before, Waits("name> $", "line", b"x\n", evidence), Ends()),
    )
    for what, beside, end, before, evidence in (
        ("of a hidden program", "hides()", "", (), "kernel"),
        ("above a hidden child", _SLEEPS, _KILLS, (), "kernel+quiet"),
        (
            "of a hidden program above a hidden child",
            f"hides(); {_SLEEPS}",
            _KILLS,
            (),
            "kernel+quiet",
        ),
        ("of a hidden program with two threads", _THREAD, "", (), "heuristic"),
        (
            "of a hidden program whose child computes",
            "hides(); child = forks(lambda: computes(60))",
            _KILLS,
            (),
            "heuristic",
        ),
    )
]

_ORPHAN = """
import os, time
if os.fork() == 0:
    if os.fork() == 0:
        time.sleep(60)
    os._exit(0)
os.wait()
print(end="name> ", flush=True)
os.read(0, 9)
"""


def named(scenarios: list[Scenario]) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("scenario", scenarios, ids=[each.name for each in scenarios])


@named(AT_WORK + ASKS)
def test_company_as_whoever_runs_the_tests(scenario: Scenario, home: Path) -> None:
    assert scenario.play(str(home)) is None


@named(AT_WORK + ASKS)
def test_company_as_an_ordinary_user(scenario: Scenario, home: Path, user: Account) -> None:
    shutil.chown(home, user.name)
    assert as_user(user, lambda: scenario.play(str(home))) is None


@named(HIDDEN)
def test_work_out_of_sight_is_no_proof(scenario: Scenario, home: Path, user: Account) -> None:
    shutil.chown(home, user.name)
    assert as_user(user, lambda: scenario.play(str(home))) is None


@pytest.mark.parametrize("relay", [(), ("script", "-qc", 'eval "$ASKS"', "/dev/null")])
def test_work_whose_parents_have_died_is_beside_the_reader(
    relay: tuple[str, ...], home: Path, user: Account
) -> None:
    shutil.chown(home, user.name)
    asks = python(_ORPHAN)
    scenario = Scenario(
        "orphan",
        relay or asks,
        (Waits("name> $", "line", b"x\n", "kernel+quiet"), Ends(None)),
        env={"ASKS": f"exec {shlex.join(asks)}"},
    )

    def play() -> str | None:
        prctl.adopt_orphans()
        return scenario.play(str(home))

    assert as_user(user, play) is None
