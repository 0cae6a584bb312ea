"""Looks at a terminal that has no process in its foreground."""

import os
from collections.abc import Iterator

import pytest

from controller_client.terminal_state.kernel.probe import TerminalProbe
from controller_client.terminal_state.kernel.proc_file import numbers_in
from controller_client.terminal_state.kernel.snapshot import Options


def open_descriptors() -> list[int]:
    return numbers_in("/proc/self/fd")


@pytest.fixture
def probe() -> Iterator[tuple[TerminalProbe, int, int]]:
    """Return a probe with both ends of its terminal; its leader never existed."""
    master, slave = os.openpty()
    created = TerminalProbe(master, 2**22 + 1)
    yield created, master, slave
    created.close()
    os.close(slave)
    os.close(master)


def test_without_a_foreground_no_task_waits_and_nothing_is_known(
    probe: tuple[TerminalProbe, int, int],
) -> None:
    snapshot = probe[0].look(Options())
    assert snapshot.waiters == []
    assert snapshot.is_unreachable
    assert snapshot.flags is not None


def test_a_hasty_look_ends_at_unread_input(probe: tuple[TerminalProbe, int, int]) -> None:
    terminal, master, _ = probe
    os.write(master, b"line\n")
    assert terminal.look(Options(), is_hasty=True).flags is None
    thorough = terminal.look(Options())
    assert thorough.has_unread
    assert thorough.flags is not None


def test_a_look_leaves_no_descriptor_open(probe: tuple[TerminalProbe, int, int]) -> None:
    terminal, _, _ = probe
    terminal.look(Options())
    before = open_descriptors()
    for _ in range(5):
        terminal.look(Options())
        terminal.wake()
    assert open_descriptors() == before


def test_a_closed_terminal_is_an_os_error() -> None:
    master, slave = os.openpty()
    os.close(slave)
    os.close(master)
    with pytest.raises(OSError, match="Bad file descriptor"):
        TerminalProbe(master, os.getpid()).look(Options())
