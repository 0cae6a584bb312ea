"""Reading the process table."""

import os
import sys

import pytest

from controller_client.process_tree import live_processes, own_children, parse_ps, parse_stat, read_process, session_members

STAT = b"4242 (a ) (b\n) T 17 4242 99 34816 4242 1077952512 1 0 0 0 2 3 0 0 20 0 1 0 123456 1 2 3"


def test_a_name_may_contain_anything() -> None:
    process = parse_stat(STAT)
    assert (process.pid, process.name, process.state, process.parent_pid, process.session, process.started) == (
        4242,
        "a ) (b\n",
        "T",
        17,
        99,
        123456,
    )
    assert process.label == "a ) (b\n[4242]"


def test_the_list_of_ps_is_understood_with_and_without_session_numbers() -> None:
    text = (
        "    1     0     0 Ss   /sbin/launchd\n  501     1 7f00ab Z+   (sh)\n garbage\n  77    1   77 S+ /Applications/My App.app/run me\n"
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


def test_a_session_nobody_belongs_to_is_empty() -> None:
    assert session_members("no-such-session", roots=(), terminal_session=None) == []
