"""A claim with evidence ``kernel`` is proven: nothing but input can end such a wait.

Programs that wait for the keyboard and for something that others set off print nothing here, so
that no text can make up for a proof.
"""

import shutil
import signal
from pathlib import Path

import pytest

from tests.programs.truth.writing import fixture, python
from tests.support.accounts import Account
from tests.support.hosts.truth import Ends, Scenario, Waits, Works, as_user

ELSEWHERE = [
    Scenario(way, fixture("waits_elsewhere.py", way), (Works(0.8), Ends(None)))
    for way in (
        "changed_file",
        "named_pipe",
        "serial_line",
        "child_signal",
        "signal_of_a_clock",
        "thread_of_a_clock",
        "timer_of_its_own",
        "inherited_event",
        "inherited_pipe",
        "inherited_sockets",
        "two_readers",
        "connection",
        "full_pipe",
        "end_of_a_reader",
        "event_of_a_ring",
        "pipe_of_a_ring",
        "descriptors_of_a_thread",
        "key thread and signal of a clock",
        "key thread and thread of a clock",
        "key thread and detached child",
        "key thread and child in a group of its own",
        "own pipe and detached child",
        "own pipe and child in a group of its own",
    )
]

_RELAY = """
import os, signal, time, tty
master, slave = os.openpty()
tty.setraw(0)
if os.fork() == 0:
    if os.fork() == 0:
        os.close(master)
        time.sleep(1.1)
        os._exit(0)
    os.close(slave)
    try:
        os.read(master, 9)
    except OSError:
        os.kill(os.getppid(), signal.SIGKILL)
    os._exit(0)
os.close(slave)
os.read(0, 9)
"""
ELSEWHERE.append(
    Scenario(
        "a relay whose program has not begun", python(_RELAY), (Works(0.8), Ends(-signal.SIGKILL))
    )
)
_LOOP = """
import os, select, socket
{own}
poll = select.poll()
poll.register(0, select.POLLIN)
poll.register(fd, select.POLLIN)
poll.poll()
"""
OWN = [
    Scenario(
        f"keyboard and {what}", python(_LOOP.format(own=own)), (Waits("", "line", b"x\n"), Ends())
    )
    for what, own in (
        ("a pipe of its own", "fd, other = os.pipe()"),
        ("sockets of its own", "near, far = socket.socketpair(); fd = near.fileno()"),
        ("an event of its own", "import ctypes; fd = ctypes.CDLL(None).eventfd(0, 0)"),
    )
]


_NESTED = """
import select
inner = select.epoll()
inner.register(0, select.EPOLLIN)
outer = select.{outer}()
outer.register(inner.fileno(), 1)
outer.poll()
"""
_STOPPED = """
import os, select, signal, sys, time
poll = select.poll()
poll.register(0, select.POLLIN)
print(sys.argv[1], end="", flush=True)
if os.fork() == 0:
    # The wait is not claimed while this child computes.
    until = time.monotonic() + 0.15
    while time.monotonic() < until:
        pass
    os.kill(os.getppid(), signal.SIGSTOP)
    time.sleep(0.05)
    os.kill(os.getppid(), signal.SIGCONT)
    os._exit(0)
poll.poll()
"""
_FIRST_THREAD_ENDS = """
import ctypes, os, platform, threading
def ask():
    print(end="name: ", flush=True)
    os.read(0, 9)
    os._exit(0)
threading.Thread(target=ask).start()
ctypes.CDLL(None).syscall(93 if platform.machine() == "aarch64" else 60, 0)
"""
MISSED_ONCE = [
    Scenario(
        "a thread that outlives the first one",
        python(_FIRST_THREAD_ENDS),
        (Waits("name: $", "line", b"x\n"), Ends()),
    ),
    *(
        Scenario(
            f"a set of descriptors in {what}",
            python(_NESTED.format(outer=outer)),
            (Waits("", "line", b"x\n"), Ends()),
        )
        for what, outer in (("another set", "epoll"), ("a poll", "poll"))
    ),
    *(
        Scenario(
            f"a poll that was stopped and continued at {text!r}",
            python(_STOPPED, text),
            (Waits(f"{text}$", "line", b"x\n"), Ends()),
        )
        for text in ("name: ", "")
    ),
]


_GLANCE = """
import select, sys, time
if len(sys.argv) > 1:
    print(sys.argv[1], end="", flush=True)
select.select([0], [], [], 0.6)
until = time.monotonic() + 0.5
while time.monotonic() < until:
    pass
"""
TIMED = [
    Scenario("a glance at the keyboard, then work", python(_GLANCE), (Works(1.0), Ends())),
    Scenario(
        "a short wait at a prompt",
        python(_GLANCE, "Quick: "),
        (Waits("Quick: $", "line", b"x\n", "kernel+quiet"), Ends()),
    ),
]


def named(scenarios: list[Scenario]) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("scenario", scenarios, ids=[each.name for each in scenarios])


@named(ELSEWHERE + OWN + MISSED_ONCE + TIMED)
def test_proof_as_whoever_runs_the_tests(scenario: Scenario, home: Path) -> None:
    assert scenario.play(str(home)) is None


@named(ELSEWHERE + OWN + MISSED_ONCE + TIMED)
def test_proof_as_an_ordinary_user(scenario: Scenario, home: Path, user: Account) -> None:
    shutil.chown(home, user.name)
    assert as_user(user, lambda: scenario.play(str(home))) is None
