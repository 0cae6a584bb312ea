"""Processes that have a terminal open are found among all processes."""

import os

from controller_client.terminal_state.kernel.outsiders import holders_of
from controller_client.terminal_state.kernel.terminal_device import identity_of


def test_processes_that_hold_the_terminal_are_found_but_for_the_skipped() -> None:
    master, slave = os.openpty()
    identity = identity_of(os.fstat(slave))
    assert os.getpid() in holders_of(identity, set())
    assert os.getpid() not in holders_of(identity, {os.getpid()})
    os.close(slave)
    assert holders_of(identity, set()) == []
    os.close(master)
