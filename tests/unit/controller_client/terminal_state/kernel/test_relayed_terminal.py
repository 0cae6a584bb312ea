"""Output that a relay has not read yet, with this process as the relay."""

import os

from controller_client.terminal_state.kernel.relayed_terminal import (
    InnerMaster,
    has_output_under_way,
)


def test_output_is_under_way_until_the_relay_read_it() -> None:
    master, slave = os.openpty()
    relay = InnerMaster(os.getpid(), master, 0)
    assert has_output_under_way(relay) is False
    os.write(slave, b"output")
    assert has_output_under_way(relay) is True
    os.read(master, 100)
    assert has_output_under_way(relay) is False
    os.close(slave)
    os.close(master)


def test_a_relay_that_is_gone_cannot_be_known() -> None:
    assert has_output_under_way(InnerMaster(2**22 + 1, 3, 0)) is None
    assert has_output_under_way(InnerMaster(os.getpid(), 100_000, 0)) is None


def test_numbers_of_terminals_are_devices_also_beyond_the_256th() -> None:
    opened: list[int] = []
    number = -1
    while number < 256:
        master, slave = os.openpty()
        number = int(os.ttyname(slave).rpartition("/")[2])
        assert InnerMaster(1, 2, number).device == os.fstat(slave).st_rdev
        opened += [master, slave]
    for fd in opened:
        os.close(fd)
