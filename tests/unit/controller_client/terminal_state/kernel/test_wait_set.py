"""System calls resolved to descriptors, with this process as its own subject."""

import array
import os
import platform
import struct
from errno import EFAULT, EIO

import pytest

from controller_client.terminal_state.kernel.wait_set import (
    AARCH64,
    X86_64,
    is_passive,
    parse_call,
    syscall_name,
    wait_set,
)

pytestmark = pytest.mark.skipif(platform.machine() != "x86_64", reason="numbers of x86_64")
READ, POLL, SELECT, PPOLL, EPOLL_WAIT, FUTEX, WAIT4, NANOSLEEP = 0, 7, 23, 271, 232, 202, 61, 35
FOR_EVER = 0xFFFFFFFFFFFFFFFF
HERE = os.getpid()


def in_memory(data: bytes) -> "tuple[array.array[int], int]":
    block = array.array("B", data)
    return block, block.buffer_info()[0]


def test_a_sleeping_task_is_parsed() -> None:
    assert parse_call(b"0 0x3 0x7f00 0x20 0x0 0x0 0x0 0x7ffe00000000 0x7f11\n") == (
        0,
        [3, 0x7F00, 0x20, 0, 0, 0],
    )


def test_a_task_outside_of_a_call_is_parsed() -> None:
    assert parse_call(b"-1 0x7ffe 0x7f11\n") == (-1, [0x7FFE, 0x7F11])


def test_a_call_of_32_bits_has_no_number_of_64_bits() -> None:
    # Three is a read of 32 bits, and it closes a file in 64 bits.
    call = parse_call(b"3 0x0 0xff8a 0x20 0x0 0x0 0x0 0xff8affe0 0xf7f11549\n")
    assert call is not None
    assert syscall_name(call[0]) == "a call of 32 bits"
    assert parse_call(b"3 0x0 0x0 0x0 0x0 0x0 0x0 0x7ffe8affe0 0x401549\n") == (3, [0] * 6)


def test_a_running_task_has_no_call() -> None:
    assert parse_call(b"running\n") is None


def test_read_waits_for_its_descriptor() -> None:
    call = wait_set(HERE, READ, [5, 0, 0, 0, 0, 0])
    assert (call.descriptors, call.timeout_seconds, call.is_read) == ([5], None, True)


def test_poll_waits_for_the_descriptors_it_wants_to_read() -> None:
    block, address = in_memory(struct.pack("ihhihhihh", 4, 1, 0, 6, 4, 0, -1, 1, 0))
    assert wait_set(HERE, POLL, [address, 3, FOR_EVER, 0, 0, 0]).descriptors == [4]
    assert wait_set(HERE, POLL, [address, 3, FOR_EVER, 0, 0, 0]).besides == (6,)
    assert wait_set(HERE, POLL, [address, 3, FOR_EVER, 0, 0, 0]).timeout_seconds is None
    assert wait_set(HERE, POLL, [address, 3, 1500, 0, 0, 0]).timeout_seconds == 1.5
    del block


def test_ppoll_reads_its_timeout_from_memory() -> None:
    block, address = in_memory(struct.pack("ihh", 0, 1, 0) + struct.pack("qq", 2, 500_000_000))
    assert wait_set(HERE, PPOLL, [address, 1, address + 8, 0, 0, 0]).timeout_seconds == 2.5
    assert wait_set(HERE, PPOLL, [address, 1, 0, 0, 0, 0]).timeout_seconds is None
    del block


def test_select_waits_for_the_bits_that_are_set() -> None:
    inputs, outputs = struct.pack("QQ", 1 << 0 | 1 << 63, 1 << 2), struct.pack("QQ", 1 << 1 | 1, 0)
    block, address = in_memory(inputs + struct.pack("qq", 0, 250_000) + outputs)
    call = wait_set(HERE, SELECT, [67, address, address + 32, 0, address + 16, 0])
    assert (call.descriptors, call.timeout_seconds) == ([0, 63, 66], 0.25)
    assert call.besides == (1,)
    assert wait_set(HERE, SELECT, [0, 0, 0, 0, 0, 0]).descriptors == []
    del block


def test_epoll_waits_for_its_set() -> None:
    import select

    reader, writer = os.pipe()
    with select.epoll() as poller:
        poller.register(reader, select.EPOLLIN)
        poller.register(writer, select.EPOLLOUT)
        call = wait_set(HERE, EPOLL_WAIT, [poller.fileno(), 0, 0, FOR_EVER, 0, 0])
        poller.modify(writer, select.EPOLLOUT | select.EPOLLONESHOT)
        poller.poll(0)
        after = wait_set(HERE, EPOLL_WAIT, [poller.fileno(), 0, 0, FOR_EVER, 0, 0])
    os.close(reader)
    os.close(writer)
    assert (call.descriptors, call.timeout_seconds, call.is_epoll) == ([reader], None, True)
    assert (call.besides, after.besides) == ((writer,), ())


def test_entries_of_an_epoll_set_are_known_by_their_files() -> None:
    import select

    with select.epoll() as poller:
        reader, writer = os.pipe()
        poller.register(reader, select.EPOLLIN)
        kept = os.dup(reader)
        os.dup2(poller.fileno(), reader)
        os.close(writer)
        moved = wait_set(HERE, EPOLL_WAIT, [poller.fileno(), 0, 0, FOR_EVER, 0, 0])
        os.close(reader)
        closed = wait_set(HERE, EPOLL_WAIT, [poller.fileno(), 0, 0, FOR_EVER, 0, 0])
        os.close(kept)
    assert moved.descriptors == closed.descriptors == [kept]


def test_other_calls_wait_for_no_descriptor() -> None:
    assert wait_set(HERE, NANOSLEEP, [0] * 6).descriptors == []


def test_memory_that_is_not_there_is_an_os_error() -> None:
    with pytest.raises(OSError, check=lambda error: error.errno in {EFAULT, EIO}):
        wait_set(HERE, POLL, [8, 1, 0, 0, 0, 0])


def test_waiting_for_others_is_passive_unless_it_ends_by_itself() -> None:
    assert is_passive(WAIT4, [0] * 6)
    assert is_passive(FUTEX, [1, 2, 3, 0, 0, 0])
    assert not is_passive(FUTEX, [1, 2, 3, 4, 0, 0])
    assert not is_passive(NANOSLEEP, [0] * 6)


def test_calls_have_names_on_both_architectures() -> None:
    assert syscall_name(NANOSLEEP) == "nanosleep"
    assert syscall_name(100_000) == "syscall 100000"
    assert syscall_name(-1) == "working"
    for calls in (X86_64, AARCH64):
        assert (
            calls.read | calls.select | calls.poll | calls.epoll | calls.passive.keys()
        ) <= calls.names.keys()
