"""Reading the process table."""

import os
import subprocess
import sys
from collections.abc import Callable

import pytest

from controller_client.system.process_tree import (
    is_same,
    live_processes,
    own_children,
    own_descendants,
    parse_ps,
    parse_stat,
    read_process,
    session_cookie_of,
    session_members,
)
from tests.support.descriptors import spare_descriptors

STAT = b"4242 (a ) (b\n) T 17 4242 99 34816 4242 1077952512 1 0 0 0 2 3 0 0 20 0 1 0 123456 1 2 3"


def test_a_name_may_contain_anything() -> None:
    process = parse_stat(STAT)
    assert (
        process.pid,
        process.name,
        process.state,
        process.parent_pid,
        process.session,
        process.started,
    ) == (
        4242,
        "a ) (b\n",
        "T",
        17,
        99,
        123456,
    )
    assert process.label == "a ) (b\n[4242]"


def test_a_main_thread_that_ended_before_the_others_is_no_end() -> None:
    assert parse_stat(STAT.replace(b") T ", b") Z ")).state == "Z"
    assert parse_stat(STAT.replace(b") T ", b") Z ").replace(b" 20 0 1 ", b" 20 0 2 ")).state == "S"


def test_the_list_of_ps_is_understood_with_and_without_session_numbers() -> None:
    text = (
        "    1     0     0 Ss   /sbin/launchd\n  501     1 7f00ab Z+   (sh)\n garbage\n"
        "  77    1   77 S+ /Applications/My App.app/run me\n"
    )
    first, zombie, app = parse_ps(text)
    assert (first.pid, first.parent_pid, first.state, first.name) == (1, 0, "S", "launchd")
    assert (zombie.session, zombie.state) == (0, "Z")
    assert (app.session, app.name) == (77, "run me")


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads /proc")
def test_we_are_in_the_table_ourselves() -> None:
    me = read_process(os.getpid())
    assert me is not None
    assert live_processes()[os.getpid()] == me or me.parent_pid == os.getppid()
    assert read_process(2**22 + 1) is None
    assert own_children() == [] or all(isinstance(pid, int) for pid in own_children())


_HOPS = """
import ctypes, os, sys, time
ctypes.CDLL(None).prctl(36, 1, 0, 0, 0)
from controller_client.system.process_tree import session_members
if os.fork() == 0:
    end = time.monotonic() + 2
    while time.monotonic() < end:
        if os.fork():
            os._exit(0)
        time.sleep(0.004)
    os._exit(0)
def is_over():
    try:
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass
    except ChildProcessError:
        return True
    return False
looks = missed = 0
while not is_over():
    is_missed = session_members("none", roots=[os.getpid()], terminal_session=None) == []
    # The last of them may have ended during the look.
    missed += is_missed and not is_over()
    looks += 1
print(looks > 1, missed)
"""
"""A process that hops: it forks, ends, and its child does the same."""


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads /proc")
def test_a_process_that_forks_and_ends_again_and_again_is_always_found() -> None:
    run = subprocess.run(
        [sys.executable, "-c", _HOPS], capture_output=True, text=True, check=True, timeout=60
    )
    assert run.stdout == "True 0\n"


def test_a_session_nobody_belongs_to_is_empty() -> None:
    assert session_members("no-such-session", roots=(), terminal_session=None) == []


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads /proc")
def test_who_has_no_descriptor_left_does_not_take_processes_for_gone() -> None:
    me = read_process(os.getpid())
    assert me is not None
    looks: list[Callable[[], object]] = [
        lambda: read_process(me.pid),
        lambda: is_same(me),
        lambda: session_cookie_of(me.pid),
        own_children,
        lambda: own_descendants(9),
        live_processes,
        lambda: session_members("none", roots=(), terminal_session=None),
    ]
    for look in looks:
        with spare_descriptors(0), pytest.raises(OSError, match="Too many open files"):
            look()
        look()


def test_a_list_of_processes_that_could_not_be_made_is_not_an_empty_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(sys, "platform", "darwin")
    with spare_descriptors(0), pytest.raises(OSError, match="Too many open files"):
        live_processes()
