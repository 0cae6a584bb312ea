"""The descriptors that a task waits for besides the terminal: is another process behind them?

An event loop wakes itself through a pipe, a pair of sockets or an eventfd. If it sleeps on these
and on the terminal alone, it waits for input as a plain reader does. This has to be proven: both
ends belong to the process, and no other process of its session holds one of them. A timer belongs
to its process. Everything else speaks for others: watched files, serial lines, named pipes,
signals, children, and kinds that are not known here. The kernel is asked for the other end of a
socket (``sock_diag``), because no file of /proc names it.
"""

import os
import re
import signal
import socket
import stat
import struct
from collections.abc import Collection, Iterable
from collections.abc import Set as AbstractSet
from contextlib import suppress
from pathlib import Path
from typing import Final

from controller_client.system.absence import raise_shortage
from controller_client.system.process_tree import own_children, own_descendants
from controller_client.terminal_state.kernel.proc_file import link_of, numbers_in, read_once

_SOCK_DIAG: Final = 4
_BY_FAMILY: Final = 20
_REQUEST: Final = 1
_SHOW_PEER: Final = 4
_PEER: Final = 2
_HEADER: Final = struct.Struct("=IHHII")
_QUESTION: Final = struct.Struct("=BBHIIIII")
_ATTRIBUTE: Final = struct.Struct("=HH")
_ANSWER_BYTES: Final = 16
_ANY: Final = 0xFFFFFFFF
_MAPPED: Final = b"0000000000000000FFFF0000"
_MAX_TABLE_BYTES: Final = 256 * 1024
"""Of a longer table of connections only the beginning is read: the rest counts as unknown."""
_EVENT: Final = "anon_inode:[eventfd]"
_TIMER: Final = "anon_inode:[timerfd]"
_SIGNALS: Final = "anon_inode:[signalfd]"
_TIMER_OF_POSIX: Final = re.compile(rb"notify: (?:signal|thread)/")
"""A timer that sends a signal, or starts a thread: each can write to a pipe or an event."""
_RING: Final = "anon_inode:[io_uring]"
_PROCESS: Final = "anon_inode:[pidfd]"
_WITH_ENDS: Final = ("pipe:[", "socket:[", _EVENT)
"""The beginnings of the names that whoever holds such a thing can set off."""
_SIGNAL_MASK: Final = re.compile(rb"sigmask:\s*([0-9a-f]+)")
_OF_TERMINAL: Final = sum(
    1 << (getattr(signal, f"SIG{name}") - 1)
    for name in ["CHLD", "INT", "QUIT", "TSTP", "TTIN", "TTOU", "CONT", "WINCH", "HUP", "TERM"]
)
"""The signals of children, of the terminal and of its user: none of them tells of other work."""
_PROCESS_ID: Final = re.compile(rb"Pid:\s*(\d+)")
_EVENT_ID: Final = re.compile(rb"eventfd-id:\s*(\d+)")
_MOST_STRAYS: Final = 4096


def speak_for_others(
    pid: int, fds: list[int], family: Collection[int] = (), *, thread: int = 0
) -> bool:
    """Return whether something else than ``pid`` may set off one of ``fds``.

    ``family`` are the pids of the other processes of its tree, and ``thread`` is the one whose
    descriptors are meant. Of a descriptor that may not be seen the answer is yes. Raises OSError if
    the others of the process may not be seen.
    """
    owner = thread or pid
    links = {fd: link_of(f"/proc/{owner}/fd/{fd}") for fd in fds}
    asked = [fd for fd, link in links.items() if link != _TIMER]
    if not all(links[fd].startswith(_WITH_ENDS) for fd in asked):
        return True
    names = _names(owner) if asked else {}
    ends: set[str] = set()
    for fd in asked:
        own = _own_ends(owner, names.get(fd, ""), names)
        if own is None:
            return True
        ends |= own
    return bool(ends) and may_hold((*family, *strays([pid, *family])), ends)


def strays(tree: Collection[int]) -> list[int]:
    """Return the processes of the session that are not in its tree.

    Their parents have died, so they have come to the holder, which is this process.
    """
    known = set(tree)
    if known.issuperset(own_children()):
        return []
    return [other.pid for other in own_descendants(_MOST_STRAYS) if other.pid not in known]


def ends_of(pid: int, fds: Iterable[int]) -> set[str]:
    """Return the names of the pipes, events and far ends of sockets that set ``fds`` off."""
    names = {_name(pid, fd) for fd in fds}
    return {
        _peer_name(name, pid) if name.startswith("socket:[") else name
        for name in names
        if name.startswith(_WITH_ENDS)
    }


def processes_behind(pid: int, fd: int, children: Iterable[int]) -> Iterable[int]:
    """Return the processes whose end a descriptor tells: one (a pidfd), or all ``children``."""
    name = link_of(f"/proc/{pid}/fd/{fd}")
    if name == _SIGNALS:
        return children
    found = _PROCESS_ID.search(read_once(f"/proc/{pid}/fdinfo/{fd}")) if name == _PROCESS else None
    return [int(found[1])] if found else []


def _tells_of_children(pid: int, fd: int, name: str, family: Iterable[int]) -> bool:
    """Return whether a descriptor tells the ends of processes of the tree, or of its terminal.

    An alarm or a stranger can send any other signal.
    """
    if name == _SIGNALS:
        mask = _SIGNAL_MASK.search(read_once(f"/proc/{pid}/fdinfo/{fd}"))
        return mask is not None and not int(mask[1], 16) & ~_OF_TERMINAL
    return name == _PROCESS and set(processes_behind(pid, fd, ())) <= set(family)


def may_hold(pids: Iterable[int], ends: AbstractSet[str]) -> bool:
    """Return whether one of these processes holds one of ``ends``, or may not be asked."""
    return any(_may_hold(pid, ends) for pid in pids)


def speak_for_strangers(pid: int, fds: list[int], family: Iterable[int] = ()) -> bool:
    """Return whether input on one of ``fds`` may come from outside of the tree of ``pid``.

    A pipe without a name and an event are held by the tree alone: they are inherited.
    """
    peers = set()
    for fd in fds:
        name = link_of(f"/proc/{pid}/fd/{fd}")
        if name.startswith("socket:["):
            peers.add(_peer_name(name, pid))
        elif not (
            name.startswith(("pipe:[", _EVENT))
            or name == _TIMER
            or _tells_of_children(pid, fd, name, family)
        ):
            return True
    for holder in (pid, *family) if peers else ():
        peers -= _held_of(peers, holder)
    return bool(peers)


def foreign_sockets(pid: int) -> list[int]:
    """Return the sockets of a process whose other end belongs to another process."""
    names = _names(pid)
    return [
        fd
        for fd, name in names.items()
        if name.startswith("socket:") and _own_ends(pid, name, names) is None
    ]


def has_ring(pid: int) -> bool:
    """Return whether a process has a ring of requests, which the kernel serves meanwhile."""
    return _RING in _names(pid).values()


def is_of_signals(pid: int, fd: int) -> bool:
    """Return whether a descriptor tells of signals."""
    return link_of(f"/proc/{pid}/fd/{fd}") == _SIGNALS


def has_timer(pid: int, fds: list[int]) -> bool:
    """Return whether one of ``fds`` is a timer, or a timer of the process may set one off."""
    if any(link_of(f"/proc/{pid}/fd/{fd}") == _TIMER for fd in fds):
        return True
    return bool(fds) and has_posix_timer(pid)


def has_posix_timer(pid: int) -> bool:
    """Return whether a process has a timer that sends a signal or starts a thread."""
    # Not every kernel tells of these timers.
    with suppress(FileNotFoundError):
        return _TIMER_OF_POSIX.search(read_once(f"/proc/{pid}/timers")) is not None
    return False


def _names(pid: int) -> dict[int, str]:
    """Return the kernel's name of each descriptor: the same name is the same pipe or socket."""
    return {fd: _name(pid, fd) for fd in numbers_in(f"/proc/{pid}/fd")}


def _name(pid: int, fd: int) -> str:
    name = link_of(f"/proc/{pid}/fd/{fd}")
    if name != _EVENT:
        return name
    # All of them have one name. Kernels before 6.1 give no number: any two may be the same.
    number = _EVENT_ID.search(read_once(f"/proc/{pid}/fdinfo/{fd}"))
    return f"{_EVENT}{number[1].decode() if number else ''}"


def _own_ends(pid: int, name: str, names: dict[int, str]) -> set[str] | None:
    """Return the names that no other process may hold if only ``pid`` is to set off ``name``.

    None if another process can set it off anyway, or if that is not known.
    """
    if _RING in names.values():
        # The kernel itself sets off events, and writes to pipes, for requests that went to a ring.
        return None
    if name.startswith(_EVENT):
        return {name}
    if name.startswith("pipe:["):
        ends = [_modes(pid, fd) for fd, other in names.items() if other == name]
        has_both = any(mode & stat.S_IWUSR for mode in ends) and any(
            mode & stat.S_IRUSR for mode in ends
        )
        return {name} if has_both else None
    if name.startswith("socket:["):
        peer = _peer_name(name)
        return {name, peer} if peer in names.values() else None
    return None


def _modes(pid: int, fd: int) -> int:
    """Return the bits that say whether a descriptor can be read and written; 0 once it is gone."""
    with suppress(FileNotFoundError):
        return os.lstat(f"/proc/{pid}/fd/{fd}").st_mode
    return 0


def _may_hold(pid: int, ends: AbstractSet[str]) -> bool:
    """Return whether a process holds one of ``ends``, or may not be asked."""
    try:
        return not ends.isdisjoint(_names(pid).values())
    except OSError as error:
        raise_shortage(error)
        return isinstance(error, PermissionError)


def _held_of(ends: set[str], pid: int) -> set[str]:
    try:
        return ends.intersection(_names(pid).values())
    except OSError as error:
        raise_shortage(error)
        return set()


def _peer_name(name: str, pid: int = 0) -> str:
    """Return the name of the other end of a socket; with ``pid``, also over TCP on this machine."""
    inode = int(name[8:-1])
    peer = _peer_of(inode)
    if peer is None and pid:
        peer = _tcp_peer_of(inode, pid)
    return f"socket:[{peer or 0}]"


def _tcp_peer_of(inode: int, pid: int) -> int:
    """Return the inode of the other end of a connection of ``pid``, 0 if it is not found here."""
    ends: dict[tuple[bytes, bytes], int] = {}
    for table in ("tcp", "tcp6"):
        with suppress(FileNotFoundError):
            for row in _rows(f"/proc/{pid}/net/{table}").splitlines()[1:]:
                fields = row.split()
                here, there = (end.removeprefix(_MAPPED) for end in fields[1:3])
                ends[here, there] = int(fields[9])
    found = next((end for end, number in ends.items() if number == inode), None)
    return ends.get(found[::-1], 0) if found else 0


def _rows(path: str) -> bytes:
    with Path(path).open("rb") as file:
        table = file.read(_MAX_TABLE_BYTES)
    # The row that the bound cuts is not read: it may lack fields, or have a part of a number.
    return table[: table.rfind(b"\n") + 1]


def _peer_of(inode: int) -> int | None:
    """Return the inode of the other end of a unix socket, 0 when there is none or it is unknown.

    None for a socket of another family.
    """
    question = _QUESTION.pack(socket.AF_UNIX, 0, 0, _ANY, inode, _SHOW_PEER, _ANY, _ANY)
    header = _HEADER.pack(_HEADER.size + len(question), _BY_FAMILY, _REQUEST, 1, 0)
    with (
        suppress(OSError, struct.error),
        socket.socket(
            socket.AF_NETLINK, socket.SOCK_RAW | socket.SOCK_NONBLOCK, _SOCK_DIAG
        ) as kernel,
    ):
        kernel.send(header + question)
        return _peer_in(kernel.recv(4096))
    return 0


def _peer_in(answer: bytes) -> int | None:
    size, kind, *_ = _HEADER.unpack_from(answer)
    if kind != _BY_FAMILY:
        return None
    place = _HEADER.size + _ANSWER_BYTES
    while place + _ATTRIBUTE.size < size:
        length, attribute = _ATTRIBUTE.unpack_from(answer, place)
        if attribute == _PEER:
            return int.from_bytes(answer[place + _ATTRIBUTE.size : place + 8], "little")
        place += max(_ATTRIBUTE.size, (length + 3) & ~3)
    return 0
