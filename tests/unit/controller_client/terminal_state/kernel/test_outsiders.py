"""Processes that have a terminal open are found among all processes."""

import os
import signal
from fcntl import F_GETFL, F_SETFL, F_SETOWN, fcntl

from controller_client.terminal_state.kernel.outsiders import holders_of, signalled_of
from controller_client.terminal_state.kernel.terminal_device import identity_of


def test_processes_that_hold_the_terminal_are_found_but_for_the_skipped() -> None:
    master, slave = os.openpty()
    identity = identity_of(os.fstat(slave))
    assert os.getpid() in holders_of(identity, set())
    assert os.getpid() not in holders_of(identity, {os.getpid()})
    os.close(slave)
    assert holders_of(identity, set()) == []
    os.close(master)


def test_a_process_is_signalled_if_the_terminal_names_it_as_the_owner() -> None:
    master, slave = os.openpty()
    identity = identity_of(os.fstat(slave))
    before = signal.signal(signal.SIGIO, signal.SIG_IGN)
    assert signalled_of(identity, [os.getpid()]) == []
    fcntl(slave, F_SETFL, fcntl(slave, F_GETFL) | os.O_ASYNC)
    fcntl(slave, F_SETOWN, os.getppid())
    assert signalled_of(identity, [os.getpid()]) == []
    fcntl(slave, F_SETOWN, os.getpid())
    assert signalled_of(identity, [os.getpid()]) == [os.getpid()]
    assert signalled_of(identity, []) == []
    os.close(slave)
    assert signalled_of(identity, [os.getpid()]) == []
    os.close(master)
    signal.signal(signal.SIGIO, before)
