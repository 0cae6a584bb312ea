"""Who has a terminal open."""

import os

from controller_client.terminal_state.outsiders import holders_of
from controller_client.terminal_state.terminal_device import identity_of


def test_whoever_has_the_terminal_open_is_found_but_those_to_skip() -> None:
    master, slave = os.openpty()
    identity = identity_of(os.fstat(slave))
    assert os.getpid() in holders_of(identity, set())
    assert os.getpid() not in holders_of(identity, {os.getpid()})
    os.close(slave)
    assert holders_of(identity, set()) == []
    os.close(master)
