"""What a task sleeps on besides the terminal: things only its own process can set off, or things that speak for others.

An event loop wakes itself through a pipe, a pair of sockets or an eventfd. Asleep on these and on the terminal alone, it waits for input
as a plain reader does. A socket's other end is asked of the kernel (``sock_diag``), for no file of /proc says it.
"""

import socket
import struct
from collections import Counter
from contextlib import suppress
from typing import Final

from controller_client.terminal_state.proc_file import link_of, numbers_in

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
# Of a child, of requests the kernel works on, of a set of which this process does not say what is in it.
_OTHERS: Final = frozenset({"anon_inode:[pidfd]", "anon_inode:[io_uring]", "anon_inode:[eventpoll]", "anon_inode:[perf_event]"})


def speak_for_others(pid: int, fds: list[int]) -> bool:
    """Whether input on one of these may come from anybody but the process itself."""
    links = _links(pid)
    ends = Counter(links.values())
    return any(_speaks_for_others(links.get(fd, ""), ends) for fd in fds)


def has_foreign_socket(pid: int) -> bool:
    """Whether a process has a socket whose other end is not its own."""
    links = _links(pid)
    ends = Counter(links.values())
    return any(link.startswith("socket:") and _speaks_for_others(link, ends) for link in links.values())


def _links(pid: int) -> dict[int, str]:
    return {fd: link_of(f"/proc/{pid}/fd/{fd}") for fd in numbers_in(f"/proc/{pid}/fd")}


def _speaks_for_others(link: str, ends: Counter[str]) -> bool:
    if link.startswith("socket:["):
        return f"socket:[{_peer_of(int(link[8:-1]))}]" not in ends
    return link in _OTHERS or link.endswith("ptmx") or (link.startswith("pipe:") and ends[link] < 2)


def _peer_of(inode: int) -> int:
    """The inode of the other end of a unix socket; 0 when there is none, or it cannot be known."""
    question = _QUESTION.pack(socket.AF_UNIX, 0, 0, _ANY, inode, _SHOW_PEER, _ANY, _ANY)
    header = _HEADER.pack(_HEADER.size + len(question), _BY_FAMILY, _REQUEST, 1, 0)
    with suppress(OSError, struct.error), socket.socket(socket.AF_NETLINK, socket.SOCK_RAW | socket.SOCK_NONBLOCK, _SOCK_DIAG) as kernel:
        kernel.send(header + question)
        return _peer_in(kernel.recv(4096))
    return 0


def _peer_in(answer: bytes) -> int:
    size, kind, *_ = _HEADER.unpack_from(answer)
    place = _HEADER.size + _ANSWER_BYTES
    while kind == _BY_FAMILY and place + _ATTRIBUTE.size < size:
        length, attribute = _ATTRIBUTE.unpack_from(answer, place)
        if attribute == _PEER:
            return int.from_bytes(answer[place + _ATTRIBUTE.size : place + 8], "little")
        place += max(_ATTRIBUTE.size, (length + 3) & ~3)
    return 0
