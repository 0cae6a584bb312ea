"""The descriptors that a task sleeps on, from its line in ``/proc/<pid>/task/<tid>/syscall``.

The arrays of select and poll are read from the memory of the task, an epoll set from ``fdinfo``.
This needs the same user or CAP_SYS_PTRACE, and raises PermissionError otherwise.
"""

import os
import platform
import re
import struct
from collections.abc import Iterable
from typing import Final, NamedTuple

from controller_client.terminal_state.kernel.proc_file import (
    READ_ONLY,
    link_of,
    numbers_in,
    read_once,
    status_of,
)
from controller_client.terminal_state.kernel.task import Task

POLL_IN: Final = 0x41  # POLLIN | POLLRDNORM, the same bits for poll and epoll
POLL_HANG_UP: Final = 0x10
_EPOLL_MODES: Final = 0xF0000000
"""The bits of an epoll entry that name no event. An entry that was told once has no others."""
MAX_DESCRIPTORS: Final = 4096
OF_32_BITS: Final = 0x7FFFFFFF
"""Stands for every call of a task of 32 bits, whose numbers and structures are others."""
_DIGITS_OF_32_BITS: Final = len("0xffffffff")
MAX_NESTED_SETS: Final = 3
EPOLL_LINK: Final = "anon_inode:[eventpoll]"
EPOLL_ENTRY: Final = re.compile(
    rb"tfd:\s*(\d+) events:\s*([0-9a-f]+)(?:[^\n]* ino:([0-9a-f]+) sdev:([0-9a-f]+))?"
)
NO_DESCRIPTOR: Final = -1
"""Stands for a file that an epoll set has, and of which the task has no descriptor any more."""


class SyscallNumbers(NamedTuple):
    """The system call numbers of one architecture."""

    read: frozenset[int]
    select: frozenset[int]
    poll: frozenset[int]
    epoll: frozenset[int]
    timeout_divisors: dict[int, int]
    """For each call whose timeout is a pointer to seconds and parts: the parts of one second. All
    other calls take milliseconds.
    """
    passive: dict[int, int | None]
    """Each call that waits for another task, a child or a signal, with the index of its timeout."""
    pause: frozenset[int]
    """The calls that do nothing but sleep for a time."""
    opaque: frozenset[int]
    """The calls that do not say what they wait for: one that was stopped and continued, a ring of
    requests, and those of tasks of 32 bits.
    """
    names: dict[int, str]
    continued_poll: tuple[int, int] | None = None
    """The call in which a poll goes on that a signal has stopped, and the call of a poll."""


X86_64: Final = SyscallNumbers(
    read=frozenset({0, 19, 45, 47, 327}),
    select=frozenset({23, 270}),
    poll=frozenset({7, 271}),
    epoll=frozenset({232, 281, 441}),
    timeout_divisors={23: 10**6, 270: 10**9, 271: 10**9, 441: 10**9},
    passive={34: None, 61: None, 128: 2, 130: None, 202: 3, 247: None},
    pause=frozenset({35, 230}),
    opaque=frozenset({219, 426, OF_32_BITS}),
    names={
        0: "read", 1: "write", 7: "poll", 16: "ioctl", 19: "readv", 20: "writev", 23: "select",
        34: "pause", 35: "nanosleep", 42: "connect",
        43: "accept", 44: "sendto", 45: "recvfrom", 46: "sendmsg", 47: "recvmsg", 61: "wait4",
        72: "fcntl", 73: "flock", 74: "fsync",
        75: "fdatasync", 128: "rt_sigtimedwait", 130: "rt_sigsuspend", 202: "futex",
        219: "restart_syscall", 230: "clock_nanosleep",
        232: "epoll_wait", 247: "waitid", 257: "openat", 270: "pselect6", 271: "ppoll",
        281: "epoll_pwait", 288: "accept4", 327: "preadv2",
        426: "io_uring_enter", 441: "epoll_pwait2",
    },
    continued_poll=(219, 7),
)  # fmt: skip
AARCH64: Final = SyscallNumbers(
    read=frozenset({63, 65, 207, 212, 286}),
    select=frozenset({72}),
    poll=frozenset({73}),
    epoll=frozenset({22, 441}),
    timeout_divisors={72: 10**9, 73: 10**9, 441: 10**9},
    passive={95: None, 98: 3, 133: None, 137: 2, 260: None},
    pause=frozenset({101, 115}),
    opaque=frozenset({128, 426, OF_32_BITS}),
    names={
        22: "epoll_pwait", 25: "fcntl", 29: "ioctl", 32: "flock", 56: "openat", 63: "read",
        64: "write", 65: "readv", 66: "writev",
        72: "pselect6", 73: "ppoll", 82: "fsync", 83: "fdatasync", 95: "waitid", 98: "futex",
        101: "nanosleep", 115: "clock_nanosleep",
        133: "rt_sigsuspend", 137: "rt_sigtimedwait", 202: "accept", 203: "connect",
        206: "sendto", 207: "recvfrom", 211: "sendmsg",
        212: "recvmsg", 242: "accept4", 260: "wait4", 286: "preadv2",
        426: "io_uring_enter", 441: "epoll_pwait2",
    },
)  # fmt: skip
SYSCALLS: Final = AARCH64 if platform.machine() in {"aarch64", "arm64"} else X86_64


class WaitSet(NamedTuple):
    """A sleep of a task: the system call, and the descriptors it wants input from.

    ``timeout_seconds`` is the time after which the sleep ends by itself; None: never. ``besides``
    are the descriptors that end the sleep in another way: by room to write, or by a hang-up.
    """

    descriptors: list[int]
    timeout_seconds: float | None = None
    is_read: bool = False
    is_epoll: bool = False
    besides: tuple[int, ...] = ()

    @property
    def is_timed(self) -> bool:
        """True if the sleep ends by itself after a time."""
        return self.timeout_seconds is not None

    @property
    def everything(self) -> list[int]:
        """Every descriptor that can end the sleep."""
        return [*self.descriptors, *self.besides]


class _Wanted(NamedTuple):
    """The descriptors of one call or set: those of which input is wanted, and the others."""

    inputs: list[int]
    besides: tuple[int, ...] = ()


def syscall_name(number: int) -> str:
    """Return the name of a system call; ``working`` for a sleep outside of one (a page fault)."""
    if number == OF_32_BITS:
        return "a call of 32 bits"
    return SYSCALLS.names.get(number, f"syscall {number}" if number >= 0 else "working")


def is_known(number: int) -> bool:
    """Return whether the descriptors of a call from which it takes input are all known here."""
    return number in SYSCALLS.names and number not in SYSCALLS.opaque


def parse_call(raw: bytes) -> tuple[int, list[int]] | None:
    """Return number and arguments of a ``syscall`` line; None while the task is runnable."""
    words = raw.split()
    if not words or words[0] == b"running":
        return None
    # The last two are the stack and the place in the code.
    if len(words) == 9 and max(len(words[7]), len(words[8])) <= _DIGITS_OF_32_BITS:
        return OF_32_BITS, []
    return int(words[0]), [int(word, 16) for word in words[1:7]]


def call_of(task: Task) -> tuple[int, list[int]] | None:
    """Return number and arguments of the call that a task sleeps in; None while it is runnable.

    A poll that a signal has stopped goes on in another call, with the arguments of the poll. Raises
    OSError when the task is out of reach.
    """
    call = parse_call(task.syscall())
    continued = SYSCALLS.continued_poll
    if call and continued and call[0] == continued[0] and _sleeps_in_poll(task.tid):
        return continued[1], call[1]
    return call


def _sleeps_in_poll(pid: int) -> bool:
    return b"poll" in read_once(f"/proc/{pid}/wchan")


def is_passive(number: int, arguments: list[int]) -> bool:
    """Return whether a call waits without a timeout for another task, a child or a signal."""
    if number not in SYSCALLS.passive:
        return False
    timeout = SYSCALLS.passive[number]
    return timeout is None or arguments[timeout] == 0


def is_pause(number: int, arguments: list[int]) -> bool:
    """Return whether a call ends by itself, or by another task of the process, and by no input."""
    calls = SYSCALLS
    if number in calls.select | calls.poll:
        return (arguments[1] if number in calls.poll else arguments[0]) & 0xFFFFFFFF == 0
    return number in calls.pause or number in calls.passive


def process_awaited(number: int, arguments: list[int]) -> int | None:
    """Return the pid whose end a call waits for; None if it waits for none, or for any child."""
    name = SYSCALLS.names.get(number)
    if name == "waitid":
        return arguments[1] if arguments[0] == os.P_PID else None
    pid = arguments[0] & 0xFFFFFFFF
    return pid if name == "wait4" and 0 < pid < 0x80000000 else None


def wait_set(pid: int, number: int, arguments: list[int]) -> WaitSet:
    """Return the descriptors and the timeout of one call; no descriptors if it waits for none.

    Raises OSError when the task is out of reach.
    """
    calls = SYSCALLS
    if number in calls.read:
        return WaitSet([arguments[0]], is_read=True)
    if number in calls.epoll:
        wanted, timeout = _wanted_by_epoll(pid, arguments[0]), arguments[3]
    elif number in calls.select:
        wanted, timeout = _wanted_by_select(pid, arguments), arguments[4]
    elif number in calls.poll:
        wanted, timeout = _wanted_by_poll(pid, arguments), arguments[2]
    else:
        return WaitSet([])
    return WaitSet(
        wanted.inputs,
        _timeout_seconds(pid, number, timeout),
        is_epoll=number in calls.epoll,
        besides=wanted.besides,
    )


def with_opened_sets(pid: int, waiting: WaitSet) -> WaitSet:
    """Return the wait with the descriptors in epoll sets in place of the sets.

    A set in a set is opened, too. The wait is one of an event loop if it had a set. Raises OSError
    when the task is out of reach.
    """
    descriptors, besides = waiting.descriptors, waiting.besides
    for _ in range(MAX_NESTED_SETS):
        sets = {fd for fd in descriptors if link_of(f"/proc/{pid}/fd/{fd}") == EPOLL_LINK}
        if not sets:
            break
        inner = [_wanted_by_epoll(pid, each) for each in sets]
        descriptors = [fd for fd in descriptors if fd not in sets]
        descriptors += [fd for each in inner for fd in each.inputs]
        besides += tuple(fd for each in inner for fd in each.besides)
    if descriptors is waiting.descriptors:
        return waiting
    return waiting._replace(descriptors=descriptors, is_epoll=True, besides=besides)


def _timeout_seconds(pid: int, number: int, argument: int) -> float | None:
    divisor = SYSCALLS.timeout_divisors.get(number)
    if divisor is None:
        # A C int; a negative one means no timeout.
        milliseconds = argument & 0xFFFFFFFF
        return milliseconds / 1000 if milliseconds < 0x80000000 else None
    if argument == 0:
        return None
    seconds, parts = struct.unpack("qq", _memory(pid, argument, 16))
    return float(seconds + parts / divisor)


def _wanted_by_epoll(pid: int, epoll_fd: int) -> _Wanted:
    info = read_once(f"/proc/{pid}/fdinfo/{epoll_fd}", 65536)
    return _wanted(
        (_descriptor_of(pid, int(found[1]), found[3], found[4]), int(found[2], 16))
        for found in EPOLL_ENTRY.finditer(info)
    )


def _descriptor_of(pid: int, fd: int, inode: bytes | None, device: bytes | None) -> int:
    """Return a descriptor that leads to the file of an entry, which is given by its inode.

    The number that it was added under may be closed by now, or lead to another file.
    """
    if inode is None or device is None:
        return fd
    file = int(inode, 16), int(device, 16)
    if _file_at(pid, fd) == file:
        return fd
    # Events, timers and sets of descriptors all have one inode.
    same = (
        other
        for other in numbers_in(f"/proc/{pid}/fd")
        if _file_at(pid, other) == file
        and not link_of(f"/proc/{pid}/fd/{other}").startswith("anon_inode:")
    )
    return next(same, NO_DESCRIPTOR)


def _file_at(pid: int, fd: int) -> tuple[int, int] | None:
    try:
        status = status_of(f"/proc/{pid}/fd/{fd}")
    except FileNotFoundError:
        return None
    # The kernel prints its own form of a device number.
    return status.st_ino, os.major(status.st_dev) << 20 | os.minor(status.st_dev)


def _wanted_by_select(pid: int, arguments: list[int]) -> _Wanted:
    count = min(arguments[0] & 0xFFFFFFFF, MAX_DESCRIPTORS)
    inputs, outputs, exceptions = (_bits(pid, address, count) for address in arguments[1:4])
    return _Wanted(
        [fd for fd in range(count) if inputs >> fd & 1],
        tuple(fd for fd in range(count) if (outputs | exceptions) & ~inputs & 1 << fd),
    )


def _bits(pid: int, address: int, count: int) -> int:
    if not address or not count:
        return 0
    return int.from_bytes(_memory(pid, address, (count + 63) // 64 * 8), "little")


def _wanted_by_poll(pid: int, arguments: list[int]) -> _Wanted:
    count = min(arguments[1] & 0xFFFFFFFF, MAX_DESCRIPTORS)
    entries = struct.iter_unpack("ihh", _memory(pid, arguments[0], count * 8)) if count else ()
    # Each entry is told of a hang-up.
    return _wanted((fd, events | POLL_HANG_UP) for fd, events, _ in entries if fd >= 0)


def _wanted(entries: Iterable[tuple[int, int]]) -> _Wanted:
    live = [(fd, events) for fd, events in entries if events & ~_EPOLL_MODES]
    return _Wanted(
        [fd for fd, events in live if events & POLL_IN],
        tuple(fd for fd, events in live if not events & POLL_IN),
    )


def _memory(pid: int, address: int, size_bytes: int) -> bytes:
    fd = os.open(f"/proc/{pid}/mem", READ_ONLY)
    try:
        data = os.pread(fd, size_bytes, address)
    finally:
        os.close(fd)
    if len(data) != size_bytes:
        raise OSError("the task's memory changed")
    return data
