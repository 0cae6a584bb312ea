"""Whose the orphans are that come to a subreaper.

Real processes, forked by a helper that may adopt them.
"""

import json
import subprocess
import sys

import pytest

PRELUDE = """
import json, os, signal, sys, time
from controller_client.system import prctl
from controller_client.system.adoption import Foster
prctl.adopt_orphans()

def holder(ends_with, cookie=None):
    '''A child with a detached child of its own; its pid and the grandchild's.'''
    ours, theirs = os.pipe()
    pid = os.fork()
    if pid == 0:
        started, starting = os.pipe()
        child = os.fork()
        if child == 0:
            os.setsid()
            named = {"HOLDLINE_SESSION": cookie} if cookie else {}
            os.execve("/bin/sleep", ["sleep", "100"], named)
        os.close(starting)
        os.read(started, 1)
        os.write(theirs, str(child).encode())
        if ends_with == "exit":
            time.sleep(0.05)
            os._exit(0)
        time.sleep(100)
    return pid, int(os.read(ours, 20))

def until_dead(pid):
    os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT)

def tell(**facts):
    print(json.dumps(facts))
"""
pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="Linux has subreapers")


def _run(script: str) -> dict[str, object]:
    ran = subprocess.run(
        [sys.executable, "-c", PRELUDE + script],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr
    facts: dict[str, object] = json.loads(ran.stdout)
    return facts


def test_what_a_killed_holder_leaves_is_its_sessions() -> None:
    facts = _run("""
foster = Foster()
pid, child = holder("kill")
foster.raised(pid, "one")
before = foster.left_by("one")
os.kill(pid, signal.SIGKILL)
until_dead(pid)
lost = foster.look()
left = foster.left_by("one")
other = foster.left_by("two")
os.kill(child, signal.SIGKILL)
tell(before=[len(before.processes), before.is_all], lost=lost,
     left=[left.processes[0].pid == child, left.is_all],
     other=[len(other.processes), other.is_all])
""")
    assert facts == {
        "before": [0, False],
        "lost": ["one"],
        "left": [True, True],
        "other": [0, False],
    }


def test_what_a_holder_left_that_ended_in_order_is_nobodys() -> None:
    facts = _run("""
foster = Foster()
pid, child = holder("exit")
foster.raised(pid, "one")
until_dead(pid)
lost = foster.look()
left = foster.left_by("one")
os.kill(child, signal.SIGKILL)
until_dead(child)
foster.look()
reaped = not os.path.exists(f"/proc/{child}")
tell(lost=lost, left=[len(left.processes), left.is_all], reaped=reaped)
""")
    assert facts == {"lost": [], "left": [0, False], "reaped": True}


@pytest.mark.parametrize("cookie", ["two", None])
def test_what_an_ended_session_left_is_let_alone_beside_a_killed_holder(cookie: str | None) -> None:
    facts = _run(f"""
foster = Foster()
ended, theirs = holder("exit", {cookie!r})
killed, ours = holder("kill", "one")
foster.raised(ended, "two")
foster.raised(killed, "one")
until_dead(ended)
os.kill(killed, signal.SIGKILL)
until_dead(killed)
left = foster.left_by("one")
for pid in (ours, theirs):
    os.kill(pid, signal.SIGKILL)
tell(left=[process.pid == ours for process in left.processes], is_all=left.is_all)
""")
    # Nobody knows whose a process without a cookie is, so the killed one may have more of them.
    assert facts == {"left": [True], "is_all": cookie is not None}


def test_the_child_of_an_orphan_that_died_is_of_the_same_session() -> None:
    facts = _run("""
foster = Foster()
ours, theirs = os.pipe()
pid = os.fork()
if pid == 0:
    if os.fork() == 0:
        child = os.fork()
        if child == 0:
            time.sleep(100)
        os.write(theirs, f"{os.getpid()} {child} ".encode())
        time.sleep(100)
    time.sleep(100)
foster.raised(pid, "one")
middle, last = map(int, os.read(ours, 100).split())
os.kill(pid, signal.SIGKILL)
until_dead(pid)
first = [process.pid for process in foster.left_by("one").processes]
os.kill(middle, signal.SIGKILL)
until_dead(middle)
second = [process.pid for process in foster.left_by("one").processes]
os.kill(last, signal.SIGKILL)
tell(first=first == [middle], second=second == [last])
""")
    assert facts == {"first": True, "second": True}


def test_a_program_that_forks_and_exits_for_ever_stays_its_sessions() -> None:
    facts = _run("""
foster = Foster()
ours, theirs = os.pipe()
pid = os.fork()
if pid == 0:
    prctl.adopt_orphans()
    if os.fork() == 0:
        os.close(ours)
        os.write(theirs, b"x")
        end = time.monotonic() + 20
        while time.monotonic() < end:
            if os.fork():
                os._exit(0)
        os._exit(0)
    os.close(theirs)
    signal.pause()
os.close(theirs)
os.read(ours, 1)
foster.raised(pid, "one")
os.kill(pid, signal.SIGKILL)
until_dead(pid)
seen = [foster.left_by("one") for _ in range(400)]
lost_sight = [left for left in seen if left.is_settled and not left.processes]
for left in iter(lambda: foster.left_by("one"), None):
    for process in left.processes:
        os.kill(process.pid, signal.SIGKILL)
    if left.is_all and not left.processes:
        break
# The pipe is at its end when the last of them is dead.
tell(lost_sight=len(lost_sight), rest=os.read(ours, 1).decode())
""")
    assert facts == {"lost_sight": 0, "rest": ""}


def test_adopted_holders_are_recognised_and_foreign_children_not_reaped() -> None:
    facts = _run("""
pid, child = holder("kill")
foreign = os.fork()
if foreign == 0:
    os._exit(3)
foster = Foster(lambda asked: "one" if asked == pid else None, lambda asked: asked == foreign)
until_dead(foreign)
foster.look()
os.kill(pid, signal.SIGKILL)
until_dead(pid)
left = foster.left_by("one")
status = os.waitstatus_to_exitcode(os.waitpid(foreign, 0)[1])
os.kill(child, signal.SIGKILL)
tell(left=[process.pid == child for process in left.processes], is_all=left.is_all, status=status)
""")
    assert facts == {"left": [True], "is_all": True, "status": 3}


def test_who_has_no_descriptor_left_learns_later_what_a_killed_holder_left() -> None:
    facts = _run("""
import resource
foster = Foster()
pid, child = holder("kill")
foster.raised(pid, "one")
os.kill(pid, signal.SIGKILL)
until_dead(pid)
limits = resource.getrlimit(resource.RLIMIT_NOFILE)
failed = []
for spare in (0, 0):
    # The pipe that was made last has the highest number.
    taken = set(map(int, os.listdir("/proc/self/fd")[:-1]))
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(set(range(99)) - taken), limits[1]))
    for ask in (foster.look, lambda: foster.left_by("one")):
        try:
            ask()
        except OSError as error:
            failed.append(error.strerror)
    resource.setrlimit(resource.RLIMIT_NOFILE, limits)
lost = foster.look()
left = foster.left_by("one")
os.kill(child, signal.SIGKILL)
is_child = [process.pid for process in left.processes] == [child]
tell(failed=failed, lost=lost, left=[is_child, left.is_all])
""")
    assert facts == {"failed": ["Too many open files"] * 4, "lost": ["one"], "left": [True, True]}


def test_a_fork_server_that_is_being_started_is_nothing_a_holder_left() -> None:
    facts = _run("""
import asyncio, subprocess, tempfile
from pathlib import Path
from types import SimpleNamespace
from controller_client.server_link.holders.fork_server import Spawner

async def main():
    spawner = Spawner(Path(tempfile.mkdtemp()), is_adopting=True)
    foster = spawner._foster
    pid, child = holder("kill")
    foster.raised(pid, "one")
    async with spawner._starting:
        server = subprocess.Popen(["sleep", "100"])
        os.kill(pid, signal.SIGKILL)
        until_dead(pid)
        foster.look()
        early = [process.pid for process in foster.left_by("one").processes]
        spawner._process = SimpleNamespace(pid=server.pid, returncode=None)
    late = [process.pid for process in foster.left_by("one").processes]
    os.kill(child, signal.SIGKILL)
    server.kill()
    tell(early=early, late=late == [child])

asyncio.run(main())
""")
    assert facts == {"early": [], "late": True}
